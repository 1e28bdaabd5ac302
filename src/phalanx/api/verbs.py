"""`phalanx.diagnose`, `attach`, `check` and `verify`: the verbs of the command line, called from Python.

A diagnosis is made in this process. The others start processes, wait, and handle signals, so that they run in one of their
own and their JSON document is read back: a notebook that calls them cannot be hurt by them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from phalanx.api.report import Report
from phalanx.calls.errors import PhalanxError

PathLike = str | os.PathLike[str]


def diagnose(*paths: PathLike) -> Report:
    """The verdict on what a job left behind: log files, folders, bundles, flight-recorder dumps.

    Raises PhalanxError where a path does not exist.
    """
    from phalanx.diagnosis import diagnose_paths

    if not paths:
        raise PhalanxError("diagnose needs at least one file or folder")
    try:
        return Report.of(diagnose_paths([os.fspath(path) for path in paths]))
    except FileNotFoundError as error:
        raise PhalanxError(str(error)) from None


def attach(pid: int | None = None, *, hosts: Sequence[str] = (), bundle: PathLike | None = None) -> Report:
    """The verdict on a job that runs now, by a process of it; without one, the only training job on this machine.

    `said` is the sentence for a job that does not hang. Raises PhalanxError where no job is found.
    """
    words = [str(pid)] if pid is not None else []
    if hosts:
        words += ["--hosts", ",".join(hosts)]
    if bundle is not None:
        words += ["--bundle", os.fspath(bundle)]
    return _ask("attach", words)


def check(
    *targets: PathLike,
    hosts: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    network: bool = True,
) -> Report:
    """What would stop a job: of these scripts, folders or checkpoints; of this machine or these hosts without any.

    Raises PhalanxError where a target or a host list makes no sense.
    """
    words = [] if network else ["--no-network"]
    if hosts:
        words += ["--hosts", ",".join(hosts)]
    for name, value in (env or {}).items():
        words += ["--env", f"{name}={value}"]
    return _ask("check", words, [os.fspath(target) for target in targets])


def verify(
    script: PathLike, *arguments: str, ranks: int = 2, steps: int | None = None, timeout: float | None = None
) -> Report:
    """Run a few steps of a training script on several ranks and say what is silently wrong with it.

    `arguments` are the script's own. Raises PhalanxError where the script cannot be run.
    """
    words = ["-n", str(ranks)]
    if steps is not None:
        words += ["--steps", str(steps)]
    if timeout is not None:
        words += ["--timeout", str(timeout)]
    return _ask("verify", words, [os.fspath(script), *arguments])


def _ask(verb: str, options: Sequence[str], rest: Sequence[str] = ()) -> Report:
    """The report of a verb in a process of its own. Raises PhalanxError with what it said where it wrote none."""
    command = [sys.executable, "-m", "phalanx", verb, "--format", "json", *options, *rest]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        return Report.from_json(json.loads(done.stdout))
    except (ValueError, KeyError, TypeError):
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = lines[-1].removeprefix("phalanx: ") if lines else f"exit status {done.returncode}"
        raise PhalanxError(f"{verb}: {said}") from None
