"""A job that fails tells everybody who was named: by command, in the summary of its CI run, and in its metrics while it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import phalanx

SOURCE = Path(phalanx.__file__).parent.parent
SCRIPT = """\
import os, pathlib, sys, time
if os.environ["RANK"] == "1":
    print("step 7 loss 0.5", flush=True)
    while not pathlib.Path("seen").exists():
        file = pathlib.Path("job.prom")
        if file.exists() and 'phalanx_rank_step{job="job",rank="1"} 7' in file.read_text():
            pathlib.Path("seen").write_text(file.read_text())
        time.sleep(0.1)
    raise KeyError("labels")
time.sleep(60)
"""


def test_a_failed_job_is_told_everywhere(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SCRIPT)
    variables = {**os.environ, "PYTHONPATH": str(SOURCE), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    command = [sys.executable, "-m", "phalanx", "run", "-n", "2", "--framework", "none", "--grace", "0.2"]
    command += ["--metrics", "job.prom", "--notify", "cmd:cat > told.json", "job.py"]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 1, done.stderr
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["headline"].startswith("Rank 1 raised KeyError: 'labels'")
    assert told["verdict"]["culprit_ranks"] == [1]
    assert (tmp_path / told["bundle"] / "manifest.json").exists()
    assert "Rank 1 raised KeyError" in (tmp_path / "summary.md").read_text()
    assert 'phalanx_ranks{job="job"} 2' in (tmp_path / "seen").read_text()
    assert "metrics: job.prom" in done.stderr
    assert not (tmp_path / "job.prom").exists()


def test_a_wrong_option_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("open('ran', 'w')\n")
    command = [sys.executable, "-m", "phalanx", "run", "-n", "1", "--notify", "pigeon:coop", "job.py"]
    variables = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "--notify pigeon" in done.stderr
    assert not (tmp_path / "ran").exists()
