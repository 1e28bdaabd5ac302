"""Runs `phalanx verify` over a job of the silent wing, its cured twin or a healthy job, and keeps the report."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import phalanx
from phalanx.zoo.environments import environment_of
from phalanx.zoo.fault import Fault
from phalanx.zoo.runner import run_fault

_SCRIPT = "train.py"
# the truth, and what would give it away
_NOT_COPIED = ("fault.toml", "cured.py", "recorded", "__pycache__")
TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Verified:
    """What `phalanx verify` said of one script. `status` is its exit status, -1 where it was cut off."""

    name: str
    twin: bool
    status: int
    seconds: float
    report: dict[str, Any] | None
    # what it printed where there is no report
    said: str = ""
    # what the job took by its own launcher just before, where that was asked for
    plain_s: float | None = None

    @property
    def alarmed(self) -> bool:
        return self.report is not None and (self.status == 1 or bool(self.report.get("verdict")))

    @property
    def slow(self) -> bool:
        """Whether it took more than three times the plain run and five seconds."""
        return self.plain_s is not None and self.seconds > 3 * self.plain_s + 5


def verify(
    fault: Fault, venv: Path | None, *, twin: bool = False, plain: bool = False, timeout_s: float = TIMEOUT_S
) -> Verified:
    """Verify the script of a fault, or of its cured twin, in a folder that tells nothing of the truth."""
    plain_s = _plain_seconds(fault, venv, twin) if plain else None
    with tempfile.TemporaryDirectory(prefix="silent-", ignore_cleanup_errors=True) as made:
        folder = Path(made) / "job"
        shutil.copytree(fault.folder, folder, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        if twin:
            shutil.copy(fault.folder / "cured.py", folder / _SCRIPT)
        began = time.monotonic()
        status, out, err = _call(command(fault, venv), folder, timeout_s, dict(fault.run.env))
        seconds = time.monotonic() - began
    try:
        report = json.loads(out)
    except ValueError:
        report = None
    return Verified(fault.name, twin, status, round(seconds, 2), report, "" if report else (out + err)[-2000:], plain_s)


def _plain_seconds(fault: Fault, venv: Path | None, twin: bool) -> float:
    with tempfile.TemporaryDirectory(prefix="silent-", ignore_cleanup_errors=True) as made:
        return round(run_fault(fault, venv or Path(sys.prefix), Path(made) / "logs", cured=twin).seconds, 2)


def command(fault: Fault, venv: Path | None) -> list[str]:
    """The words of `phalanx verify` for a fault: its own arguments follow the script."""
    words = [sys.executable, "-m", "phalanx", "verify", "-n", str(fault.run.world_size), "--format", "json"]
    if venv is not None:
        words += ["--python", str(venv / "bin" / "python")]
    own = list(fault.run.command)
    return [*words, *(fault.verify or own[own.index(_SCRIPT) :])]


def environment_for(fault: Fault) -> str | None:
    """The zoo's environment that a job needs beside PyTorch; None where the interpreter that verifies will do."""
    name = environment_of(fault).name
    return None if name == "torch" else name


def _call(words: list[str], folder: Path, timeout_s: float, env: dict[str, str]) -> tuple[int, str, str]:
    source = str(Path(phalanx.__file__).parents[1])
    # verify describes the cluster itself
    mine = {name: value for name, value in env.items() if name != "TF_CONFIG"}
    inherited = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    process = subprocess.Popen(
        words,
        cwd=folder,
        env={**inherited, "OMP_NUM_THREADS": "1", "PYTHONPATH": source, "NO_COLOR": "1", **mine},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        process.terminate()  # it ends its ranks
        try:
            out, err = process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        return -1, out, err


def keep(result: Verified, folder: Path) -> None:
    """Write a result where `read` finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = _file(folder, result.name, result.twin)
    file.with_suffix(".new").write_text(json.dumps(asdict(result)), encoding="utf-8")
    file.with_suffix(".new").replace(file)


def read(folder: Path, name: str, *, twin: bool) -> Verified | None:
    """A kept result; None where there is none."""
    file = _file(folder, name, twin)
    return Verified(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def _file(folder: Path, name: str, twin: bool) -> Path:
    return folder / f"{name}{'.cured' if twin else ''}.json"
