"""Commands that Phalanx prints work as they are printed, from the folder where they were printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.job
pytest.importorskip("torch", reason="needs torch: pip install torch==2.13.0")

SCRIPT = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.Linear(4, 2)
ddp = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    ddp(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    if step == 2 and dist.get_rank() == 1:
        raise ValueError("bad batch")
dist.destroy_process_group()
"""


def phalanx(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *shlex.split(words.replace("phalanx", "-m phalanx", 1))]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)


@pytest.mark.parametrize("place", ["here", "elsewhere"])
def test_after_a_recorded_failure(place: str, tmp_path: Path) -> None:
    here = tmp_path / "my runs"  # a name that a shell would split
    here.mkdir()
    project = here if place == "here" else tmp_path / "project"
    project.mkdir(exist_ok=True)
    (project / "train.py").write_text(SCRIPT)
    script = "train.py" if place == "here" else "../project/train.py"
    done = phalanx(f"phalanx run -n 2 --record=ring {script}", here)
    assert done.returncode == 1, done.stderr
    printed = re.findall(r"(?:more|again): (phalanx .+)$", done.stderr, re.MULTILINE)
    assert [shlex.split(one)[1] for one in printed] == ["diagnose", "replay"], done.stderr
    diagnosed, replayed = (phalanx(one, here) for one in printed)
    assert diagnosed.returncode == 1, diagnosed.stderr
    assert "ValueError: bad batch" in diagnosed.stdout
    assert "fails again in the same way" in replayed.stdout, replayed.stderr


def test_after_a_check_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        SCRIPT.replace(
            "    optimizer.step()\n", "    optimizer.step()\n    if dist.get_rank() == 0:\n        dist.barrier()\n"
        )
    )
    done = phalanx("phalanx check train.py", tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    printed = re.findall(r"(phalanx rules explain \w+)", done.stdout)
    assert printed, done.stdout
    explained = phalanx(printed[0], tmp_path)
    assert explained.returncode == 0
    assert printed[0].split()[-1] in explained.stdout
