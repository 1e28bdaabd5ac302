"""Real jobs of two ranks under `phalanx verify`: what it says of them, and how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.job
HEAD = """
import torch, torch.nn as nn, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
{wrap}
optimizer = torch.optim.SGD(model.parameters(), 0.05)
torch.manual_seed(1 + rank)
for step in range({steps}):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    loss = (model(x) - x[:, :2]).square().mean()
    loss.backward()
    {reduce}
    optimizer.step()
print("done", rank)
dist.destroy_process_group()
"""
WRAPPED = "model = nn.parallel.DistributedDataParallel(model)"


def verify(folder: Path, text: str, *options: str) -> tuple[int, dict[str, Any], str]:
    script = folder / "train.py"
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", "verify", "-n", "2", "--format", "json", *options, "train.py"],
        cwd=folder, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def test_a_healthy_job_ends_after_the_steps_that_were_asked_for(tmp_path: Path) -> None:
    status, report, said = verify(tmp_path, HEAD.format(wrap=WRAPPED, steps=10_000, reduce="pass"), "--steps", "5")
    assert status == 0, said
    assert report["findings"] == []
    assert report["scope"] == "5 steps on 2 ranks"
    assert report["not_checked"] == []
    assert "done" not in said
    assert list(tmp_path.iterdir()) == [tmp_path / "train.py"]


def test_a_model_that_was_never_wrapped(tmp_path: Path) -> None:
    status, report, said = verify(tmp_path, HEAD.format(wrap="", steps=6, reduce="pass"))
    assert status == 1, said
    verdict = report["verdict"]
    assert verdict["cause"] == "gradients-never-synchronised"
    assert verdict["place"]["line"] == 8
    assert verdict["fixes"][0]["pattern"] == "fix-distributed-api-usage"
    assert "done" in said


def test_a_job_that_fails_could_not_be_verified(tmp_path: Path) -> None:
    status, report, _ = verify(tmp_path, HEAD.format(wrap=WRAPPED, steps=3, reduce="raise ValueError('bad batch')"))
    assert status == 2
    assert "bad batch" in report["not_checked"][0]["what"]


def test_what_loaders_give_is_seen(tmp_path: Path) -> None:
    """A loader without a sampler for ranks, and an evaluation whose shares are never summed."""
    text = """
import torch, torch.nn as nn, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 8), torch.randn(32, 2))
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.05)
train = DataLoader(data, 8, shuffle=True, num_workers=1)
held = DataLoader(data, 8, sampler=DistributedSampler(data, shuffle=False))
for x, y in train:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
with torch.no_grad():
    loss = sum(nn.functional.mse_loss(model(x), y) for x, y in held)
dist.destroy_process_group()
"""
    status, report, said = verify(tmp_path, text)
    assert status == 1, said
    found = {finding["cause"]: finding for finding in report["findings"]}
    assert set(found) == {"data-not-sharded", "metric-of-one-share"}, found
    assert found["data-not-sharded"]["place"]["line"] == 9
    assert found["metric-of-one-share"]["place"]["line"] == 10


def test_a_long_run_is_sampled_and_ends_with_its_own_status(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEAD.format(wrap="", steps=4, reduce="pass"))
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", "run", "-n", "2", "--verify=sample", "--bundle", "kept", "train.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 ranks each train a `Sequential` of their own" in " ".join(done.stdout.split())
    assert (
        json.loads((tmp_path / "kept" / "verify.json").read_text())["verdict"]["cause"]
        == "gradients-never-synchronised"
    )


def test_two_that_stand_in_the_same_place_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch")
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", "run", "-n", "2", "--verify=sample", "--record=full", "train.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--verify and --record" in done.stderr


def test_a_wrapper_in_evaluation_mode_around_a_module_that_trains(tmp_path: Path) -> None:
    """As Lightning leaves it behind an evaluation."""
    text = HEAD.format(wrap=WRAPPED, steps=8, reduce="model.training = False").replace(
        "nn.ReLU()", "nn.BatchNorm1d(16)"
    )
    status, report, said = verify(tmp_path, text)
    assert (status, report["findings"]) == (0, []), said
