"""Records a job and replays it as a user does, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..run.jobs import SOURCE, Done
from ..run.jobs import run as run_job

__all__ = ["Done", "Replay", "phalanx", "record", "replay"]


@dataclass
class Replay:
    status: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        assert self.status in (0, 1), self.err
        return dict(json.loads(self.out))


def record(
    folder: Path, mode: str, size: int, *arguments: str, options: tuple[str, ...] = (), **variables: str
) -> Done:
    """`phalanx run --record=…` in this folder; the bundle goes to `folder/bundle`."""
    return run_job(folder, f"--record={mode}", "-n", str(size), *options, "train.py", *arguments, **variables)


def replay(folder: Path, *arguments: str, typed: str = "", **variables: str) -> Replay:
    return phalanx(folder, "replay", *arguments, typed=typed, **variables)


def phalanx(folder: Path, *arguments: str, typed: str = "", **variables: str) -> Replay:
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", *arguments],
        cwd=folder,
        input=typed,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "200", **variables},
    )
    return Replay(done.returncode, done.stdout, done.stderr)
