"""A real job of PyTorch across the hosts of a bed, started by `phalanx run --on ssh://…`, is broken in the middle: the cause is named, and the host."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from phalanx.lab import Bed
from phalanx.lab.fault import find_fault
from phalanx.lab.ssh import start_ssh
from tests.lab.beds import needs_beds

SOURCE = Path(__file__).parents[2] / "src"
TRAIN = """
import time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(5000):
    optimizer.zero_grad()
    model(torch.randn(16, 64)).square().mean().backward()
    optimizer.step()
    if step % 20 == 0:
        print("step", step, flush=True)
    time.sleep(0.02)
"""


def start_job(bed: Bed, folder: Path, *more: str) -> subprocess.Popen[str]:
    """The driver on h0, one rank on every host."""
    start_ssh(bed)
    project = folder / "project"
    project.mkdir()
    (project / "train.py").write_text(TRAIN)
    program = f"import os; os.chdir({str(project)!r}); from phalanx.cli import main; main()"
    hosts = ",".join(host.name for host in bed)
    return bed["h0"].start(
        ["env", f"PYTHONPATH={SOURCE}", "OMP_NUM_THREADS=1", sys.executable, "-c", program,
         "run", "-n", str(len(bed.hosts)), "--on", f"ssh://{hosts}", "--bundle", str(folder / "bundle"), *more, "train.py"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def read_until(process: subprocess.Popen[str], word: str, seconds: float) -> list[str]:
    """Lines up to the first that has the word."""
    assert process.stdout is not None
    end = time.monotonic() + seconds
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if word in line:
            return lines
        assert time.monotonic() < end, "".join(lines)
    raise AssertionError("".join(lines))


@needs_beds
@pytest.mark.job
@pytest.mark.parametrize(
    "name",
    ["partition", "partition:host=h2", "host-off", "one-way-block-in-job", "one-way-block-in-job:source=h1,target=h2"],
)
def test_a_break_in_the_middle_of_training_is_named(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="pip install torch")
    fault, chosen = find_fault(name)
    with Bed(3) as bed:
        process = start_job(bed, tmp_path, "--on-stall", "abort")
        try:
            said = read_until(process, "step 40", 240)
            began = time.monotonic()
            fault.apply(bed, chosen)
            said += read_until(process, "✗", 120)
            took = time.monotonic() - began
            rest, _ = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait(10)
    with capsys.disabled():
        print(f" [{name}: named after {took:.1f} s]", end="")
    verdict = json.loads((tmp_path / "bundle" / "report.json").read_text())["verdict"]
    assert verdict["cause"] == fault.expected.cause, "".join(said) + rest
    assert process.returncode != 0
    if fault.expected.cause == "host-lost":
        host = chosen.get("host", "h1")
        assert verdict["culprit_ranks"] == [int(host[1:])]
        assert f"host {host} " in verdict["summary"]
    else:
        assert verdict["culprit_ranks"] == []  # neither end is to blame; both are named
        assert "h1" in verdict["summary"]
        assert chosen.get("target", "h0") in verdict["summary"]
    assert took < 60
