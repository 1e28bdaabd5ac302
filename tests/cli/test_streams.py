"""Closed or full standard streams cost the output, never a traceback, and never the job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PHALANX = [sys.executable, "-m", "phalanx"]
LOG = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n[rank0]: waiting\n"


def run_with(tmp_path: Path, redirections: str, *words: str) -> tuple[int, str, str]:
    out, err = tmp_path / "out", tmp_path / "err"
    line = f'exec "$@" {redirections.format(out=out, err=err)}'
    command = ["sh", "-c", line, "sh", *PHALANX, *words]
    done = subprocess.run(command, cwd=tmp_path, timeout=120, check=False, stdin=subprocess.DEVNULL)
    return done.returncode, *(path.read_text() if path.exists() else "" for path in (out, err))


@pytest.mark.parametrize("words", [("diagnose", "one.log"), ("diagnose", "-f", "json", "one.log"), ("--version",)])
@pytest.mark.parametrize("redirections", [">&- 2>{err}", ">{out} 2>&-", ">&- 2>&-", ">/dev/full 2>{err}", ">/dev/full 2>/dev/full"])  # fmt: skip
def test_no_traceback(tmp_path: Path, words: tuple[str, ...], redirections: str) -> None:
    (tmp_path / "one.log").write_text(LOG)
    status, _, err = run_with(tmp_path, redirections, *words)
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    if "/dev/full" in redirections:
        assert status == 2
        assert "No space left" in err or "2>/dev/full" in redirections
    else:
        assert status == (1 if "diagnose" in words else 0)


@pytest.mark.parametrize("redirections", [">&- 2>{err}", ">{out} 2>&-", ">&- 2>&-", ">/dev/full 2>{err}"])
def test_a_job_runs_to_its_end(tmp_path: Path, redirections: str) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint('hello')\nprint('trouble', file=sys.stderr)\n")
    status, _, err = run_with(tmp_path, redirections, "run", "-n", "1", "--bundle", "kept", "train.py")
    assert (status, "Traceback" in err) == (0, False)
    assert (tmp_path / "kept/attempt0/rank0/output.log").read_text() == "hello\ntrouble\n"
