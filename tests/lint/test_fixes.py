"""Safe repairs: what is written, what is only shown, and what stays as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BAD = """\
import os

import torch.distributed as dist

dist.init_process_group("gloo")
os.makedirs(
    "é/out",
)
dist.destroy_process_group()
"""


def check(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "phalanx", "check", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_diff_shows_and_fix_writes(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(BAD.replace("\n", "\r\n").encode())
    shown = check("--diff", "train.py", cwd=tmp_path)
    assert shown.returncode == 1
    assert "+) " not in shown.stdout
    assert "exist_ok=True" in shown.stdout
    assert path.read_bytes() == BAD.replace("\n", "\r\n").encode()
    fixed = check("--fix", "train.py", cwd=tmp_path)
    assert (fixed.returncode, "exist_ok=True" in fixed.stderr) == (0, True), fixed.stderr
    text = path.read_bytes().decode()
    assert text.count("\r\n") == BAD.count("\n")
    compile(text, "train.py", "exec")
    assert check("--diff", "train.py", cwd=tmp_path).returncode == 0


def test_nothing_to_repair_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "import torch.distributed as dist\n\ndist.init_process_group('gloo')\nif dist.get_rank() == 0:\n    dist.barrier()\n"
    )
    before = path.stat().st_mtime_ns
    done = check("--fix", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert path.stat().st_mtime_ns == before
