"""One rank against several: sums are told as a factor, legitimate differences are explained, equal jobs give nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from phalanx.verification.evidence import Evidence, RankEvidence
from phalanx.verification.one_device import compare, joined_steps
from tests.verification.made import Job, Vector, mean, plus, vector


def batch(rank: int) -> dict[str, Any]:
    return {"k": "batch", "step": 0, "l": 0, "e": 0, "ids": None, "mark": rank, "rows": [1, 2]}


def several(factor: float = 1.0, layers: tuple[str, ...] = (), twisted: bool = False, size: int = 4) -> Evidence:
    def reduce(all_own: list[Vector], rank: int, index: int) -> Vector:
        total = mean(all_own, factor)
        return plus(total, vector("twist"), 0.5) if twisted and index == 1 else total

    model = {"k": "model", "m": 1, "kind": "module", "cls": "Net", "inside": None, "layers": list(layers)}
    return Job(size, steps=2, reduce=reduce, more=lambda rank: [model, batch(rank)]).evidence


def alone(size: int = 4) -> Evidence:
    """One rank, whose gradient is the mean of what the ranks bring."""
    made = Job(
        1,
        steps=2,
        own=lambda rank, step, index: mean([vector("g", one, step, index) for one in range(size)]),
        more=lambda rank: [{"k": "given", "step": 0, "l": 0, "number": 0}],
    )
    return made.evidence


def test_equal_jobs_give_nothing() -> None:
    assert compare(several(), alone()) == ([], [])
    assert joined_steps(several()) == 2


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (4.0, "4.00 × those of one rank with the same global batch: summed, not averaged"),
        (0.25, "divided by 4 once too often"),
        (3.0, "a constant factor"),
    ],
)
def test_a_factor_is_told_as_such(factor: float, words: str) -> None:
    found, _ = compare(several(factor), alone())
    assert [one.cause for one in found] == ["gradients-scaled-by-ranks"]
    assert words in found[0].headline


def test_the_first_layer_that_differs_is_named() -> None:
    found, _ = compare(several(twisted=True), alone())
    assert [one.cause for one in found] == ["gradients-differ-from-one-rank"]
    assert "1 of 2 gradients" in found[0].headline
    assert "`fc2.weight`" in found[0].headline


def test_layers_that_depend_on_the_batch_are_explained() -> None:
    found, unchecked = compare(several(layers=("BatchNorm1d",), twisted=True), alone())
    assert found == []
    assert "BatchNorm1d normalises over each rank's own batch of 2 samples" in unchecked[0].what
    assert compare(several(layers=("SyncBatchNorm",)), alone()) == ([], [])


def test_other_weights_at_the_start_are_not_compared() -> None:
    other = Job(
        1, steps=1, start=lambda rank, index: vector("other", index), more=lambda rank: [{"k": "given", "step": 0}]
    )
    found, unchecked = compare(several(), other.evidence)
    assert found == []
    assert "starts from other weights" in unchecked[0].what


def test_nothing_is_said_where_no_batch_was_given() -> None:
    one = alone().ranks[0]
    bare = Evidence({0: RankEvidence(0, tuple(record for record in one.records if record["k"] != "given"))}, 1)
    found, unchecked = compare(several(4.0), bare)
    assert (found, len(unchecked)) == ([], 1)


SCRIPT = """
import sys, torch, torch.nn as nn, torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset, DistributedSampler
dist.init_process_group("gloo"); torch.manual_seed(0)
data = TensorDataset(torch.randn(48, 8), torch.randn(48, 2))
loader = DataLoader(data, 4, sampler=DistributedSampler(data))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for x, y in loader:
    optimizer.zero_grad()
    (model(x) - y).square().mean().backward()
    for one in model.parameters():
        dist.all_reduce(one.grad)
        if "--sum" not in sys.argv:
            one.grad /= dist.get_world_size()
    optimizer.step()
dist.destroy_process_group()
"""


@pytest.mark.job
@pytest.mark.parametrize("words", [(), ("--sum",)])
def test_real_jobs(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [
        sys.executable,
        "-m",
        "phalanx",
        "verify",
        "-n",
        "2",
        "--format",
        "json",
        "--against",
        "1",
        "train.py",
        *words,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    report = json.loads(done.stdout or "{}")
    causes = [one["cause"] for one in report["findings"]]
    if words:
        assert done.returncode == 1, done.stderr
        assert "gradients-scaled-by-ranks" in causes or "gradients-summed" in causes
    else:
        assert (done.returncode, causes) == (0, []), done.stderr
        assert report["scope"].endswith("6 of them again on one rank with the joined batches")
