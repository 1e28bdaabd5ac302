"""A verdict reaches the runs of wandb, MLflow and TensorBoard that a rank has open, while its main thread sleeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.run.watch.asking import tell_trackers
from phalanx.run.watch.heartbeat import FOLDER

REPORT = {"verdict": {"headline": "Rank 1 never joined all_reduce", "rule": "HNG081", "culprit_ranks": [1]}}
JOB = """
import os, sys, time
import torch.distributed
import wandb, mlflow
from torch.utils.tensorboard import SummaryWriter
run = wandb.init(mode="offline", dir="wb", project="p", settings=wandb.Settings(silent=True))
mlflow.set_tracking_uri("file:" + os.path.abspath("ml"))
mlflow.start_run()
writer = SummaryWriter("tb")
print("ready", flush=True)
sys.stdin.readline()
print(run.summary.get("phalanx/rule"), flush=True)
"""


@pytest.mark.job
def test_open_runs_get_the_verdict(tmp_path: Path) -> None:
    for name in ("torch", "wandb", "mlflow", "tensorboard"):
        pytest.importorskip(name, reason=f"needs {name}: pip install '.[dev]'")
    (tmp_path / "job.py").write_text(JOB)
    folder = tmp_path / "attempt" / "rank0"
    folder.mkdir(parents=True)
    variables = {**os.environ, "PYTHONPATH": str(FOLDER), "PHALANX_INSIDE": f"0:2:{folder / 'heartbeat'}"}
    variables |= {"MLFLOW_ALLOW_FILE_STORE": "true", "GIT_PYTHON_REFRESH": "quiet"}
    process = subprocess.Popen(
        [sys.executable, "job.py"],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process_file = {"rank": 0, "pid": process.pid, "host": os.uname().nodename}
        (folder / "process.json").write_text(json.dumps(process_file))
        told = tell_trackers(tmp_path / "attempt", REPORT, "✗ Rank 1 never joined", timeout=60)
        assert told == {0: ["wandb", "mlflow", "tensorboard"]}
        out, _ = process.communicate("\n", timeout=60)
    finally:
        process.kill()
    assert out.splitlines()[0] == "HNG081"
    tags = {path.name: path.read_text() for path in (tmp_path / "ml").rglob("tags/phalanx.*")}
    assert tags == {
        "phalanx.verdict": "Rank 1 never joined all_reduce",
        "phalanx.rule": "HNG081",
        "phalanx.culprit_ranks": "1",
    }
    events = b"".join(path.read_bytes() for path in (tmp_path / "tb").glob("events*"))
    assert b"phalanx/verdict" in events
    assert b"Rank 1 never joined" in events
