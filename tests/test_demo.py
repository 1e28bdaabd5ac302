"""The README's first command: a real job of four ranks breaks, and the verdict names the rank that did it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.job
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
)
def test_demo() -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", str(ROOT / "demo" / "run.sh")],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "rank 2; ranks 0, 1, 3 suffered from it" in done.stdout
    assert "Rank 2 ran out of batches" in done.stdout
    assert "[CER063, perf.hang, likely]" in done.stdout
    # The second job is caught while it hangs, from both sides' lines.
    assert re.search(r"ranks 0, 1, 3 wait in .*; rank 2 waits in barrier at train\.py:\d+", done.stderr)
    assert "ended at a stall because of rank 2" in done.stderr
