"""A resumed run: a true continuation gives nothing, and each state that is lacking is told by its name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phalanx.verification.evidence import Evidence, RankEvidence
from phalanx.verification.resumed import compare, first_difference
from phalanx.verification.resumption import Resumption, Saved, differs
from tests.verification.made import Job, sketch

SAVED_AT = 4


def going_on() -> Evidence:
    """Ten steps with a schedule, moments, data, dropout and a loss scaler."""
    return Job(
        steps=10,
        rate=lambda rank, step: 0.1 / (1 + step),
        events=lambda rank, step: [
            ["forward", {"m": 0, "rng": 1000 * rank + step, "dropout": True}],
            ["backward", {"loss": 1.0 / (1 + step)}],
            ["scaler", {"scale": 2.0 ** (16 - step)}],
        ],
        fields=lambda rank, step: {"state": [[sketch([step, rank, 1.0])], [sketch([step, rank, 2.0])]]},
        more=lambda rank: [
            {
                "k": "batch",
                "step": step,
                "l": 0,
                "e": 0,
                "ids": [10 * rank + step],
                "mark": 10 * rank + step,
                "rows": [1],
            }
            for step in range(10)
        ],
    ).evidence


def resumed(change: Callable[[dict[str, Any]], None] = lambda record: None) -> Evidence:
    """The same from the saved step on, counted from 0 again, with one thing changed."""
    ranks = {}
    for rank, one in going_on().ranks.items():
        states = {record["step"]: record["state"] for record in one.all("step")}
        records = []
        for record in one.records:
            if "step" in record and record["k"] in ("step", "batch"):
                if record["step"] < SAVED_AT:
                    continue
                record = json.loads(json.dumps(record))
                record["step"] -= SAVED_AT
                if record["k"] == "step":
                    record["n"] -= SAVED_AT
                    record["state_before"] = states[SAVED_AT - 1] if record["step"] == 0 else None
                change(record)
            records.append(record)
        ranks[rank] = RankEvidence(rank, tuple(records))
    return Evidence(ranks, 2)


def causes(change: Callable[[dict[str, Any]], None] = lambda record: None) -> list[str]:
    found = Resumption(
        going_on(), resumed(change), SAVED_AT, Saved("last.pt", {"model": {}}), "train.py:30", "train.py:12"
    )
    return [one.cause for one in compare(found)]


def test_a_true_continuation_gives_nothing() -> None:
    assert causes() == []
    assert first_difference(Resumption(going_on(), resumed(), SAVED_AT, Saved())) is None
    assert differs(going_on(), going_on(), 10) == ""


def _no_moments(record: dict[str, Any]) -> None:
    if record["k"] == "step" and record["step"] == 0:
        record["state_before"] = [[], []]


def _first_rate(record: dict[str, Any]) -> None:
    if record["k"] == "step":
        record["lr"] = [0.1 / (1 + record["step"])]


def _first_scale(record: dict[str, Any]) -> None:
    if record["k"] == "step":
        record["events"][2][1]["scale"] = 65536.0


def _first_batches(record: dict[str, Any]) -> None:
    if record["k"] == "batch":
        record["ids"] = [record["ids"][0] - SAVED_AT]
        record["mark"] -= SAVED_AT


def _other_chance(record: dict[str, Any]) -> None:
    if record["k"] == "step":
        record["events"][0][1]["rng"] += 7


def _other_chance_without_dropout(record: dict[str, Any]) -> None:
    _other_chance(record)
    if record["k"] == "step":
        record["events"][0][1]["dropout"] = False


def _one_other_weight(record: dict[str, Any]) -> None:
    if record["k"] == "step" and record["step"] == 0:
        record["before"][1] = sketch([5.0, 5.0, 5.0])


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (_no_moments, ["optimizer-state-not-resumed"]),
        (_first_rate, ["scheduler-not-resumed"]),
        (_first_scale, ["scaler-not-resumed"]),
        (_first_batches, ["sampler-position-not-resumed"]),
        (_other_chance, ["random-state-not-resumed"]),
        (_other_chance_without_dropout, []),
        (_one_other_weight, ["resumed-weights-differ"]),
    ],
)
def test_each_state_that_is_lacking_is_named(change: Callable[[dict[str, Any]], None], cause: list[str]) -> None:
    assert causes(change) == cause


def test_a_run_that_starts_anew() -> None:
    first = {rank: one.all("step")[0]["before"] for rank, one in going_on().ranks.items()}

    def change(record: dict[str, Any]) -> None:
        if record["k"] == "step" and record["step"] == 0:
            record["before"] = first[0]

    assert causes(change) == ["resume-starts-anew"]


def test_batches_that_are_skipped_before_the_first_step_are_no_fault() -> None:
    evidence = resumed()
    ranks = {
        rank: RankEvidence(
            rank, ({"k": "batch", "step": 0, "l": 0, "e": 0, "ids": [99], "mark": 99, "rows": [1]}, *one.records)
        )
        for rank, one in evidence.ranks.items()
    }
    assert compare(Resumption(going_on(), Evidence(ranks, 2), SAVED_AT, Saved())) == []


SCRIPT = """
import sys, torch, torch.nn as nn, torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset, DistributedSampler
dist.init_process_group("gloo"); rank = dist.get_rank(); torch.manual_seed(0)
data = TensorDataset(torch.randn(96, 8), torch.randn(96, 2))
sampler = DistributedSampler(data); loader = DataLoader(data, 4, sampler=sampler)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2); schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
done = 0
if "--resume" in sys.argv:
    saved = torch.load("last.pt"); model.load_state_dict(saved["model"]); done = saved["step"]
    if "optimizer" in saved:
        optimizer.load_state_dict(saved["optimizer"]); schedule.load_state_dict(saved["scheduler"])
for number, (x, y) in enumerate(loader):
    if number < done:
        continue
    optimizer.zero_grad(); (model(x) - y).square().mean().backward(); optimizer.step(); schedule.step()
    if number == 2 and rank == 0:
        saved = {"model": model.state_dict(), "step": number + 1}
        if "--whole" in sys.argv:
            saved |= {"optimizer": optimizer.state_dict(), "scheduler": schedule.state_dict()}
        torch.save(saved, "last.pt")
    dist.barrier()
    if number == 7:
        break
dist.destroy_process_group()
"""


def verify(folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    (folder / "train.py").write_text(SCRIPT)
    command = [
        sys.executable,
        "-m",
        "phalanx",
        "verify",
        "-n",
        "2",
        "--format",
        "json",
        "--resume-with",
        "--resume",
        "train.py",
        *words,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


@pytest.mark.job
def test_a_real_job_that_resumes_well(tmp_path: Path) -> None:
    status, report, said = verify(tmp_path, "--whole")
    assert (status, report["findings"]) == (0, []), said
    assert "killed after 5 steps, resumed from the save of step 3 for 5 steps" in report["scope"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["last.pt", "train.py"]


@pytest.mark.job
def test_a_real_job_that_saves_weights_only(tmp_path: Path) -> None:
    status, report, said = verify(tmp_path)
    assert status == 1, said
    assert [one["cause"] for one in report["findings"]] == ["optimizer-state-not-resumed", "scheduler-not-resumed"]
    assert "last.pt does not hold the optimizer state" in report["verdict"]["headline"]
    assert report["verdict"]["place"]["text"] == 'torch.save(saved, "last.pt")'
