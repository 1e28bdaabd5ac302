"""Starts a fault by `phalanx run` instead of its own launcher, so that a whole bundle is kept and times are compared."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import phalanx
from phalanx.zoo.fault import Fault, FaultError, RunPlan

# the line of a verdict, in the output of `phalanx run`, that names whom it accuses
VERDICT = re.compile(rb"^  who  ", re.MULTILINE)
# what `phalanx run` sets itself; a fault that sets it for all ranks alike only describes the cluster
_SET_BY_LAUNCHER = ("TF_CONFIG",)
_LAUNCHERS = ("torchrun", "processes", "horovodrun")
_SCRIPT = "train.py"
_SOURCE = Path(phalanx.__file__).parents[1]


def can_be_watched(fault: Fault) -> bool:
    """Whether the job is one script on every rank, which any launcher may start.

    Where the fault lies in the launcher's own command, in the variables of single ranks or in ranks that are
    never started, another launcher would be another fault.
    """
    plan = fault.run
    own_launch = bool(plan.rank_env or plan.start) or plan.command[0] not in ("torchrun", "python", "horovodrun")
    return plan.launcher in _LAUNCHERS and not own_launch and _SCRIPT in plan.command and not _launch_is_cured(fault)


def _restarts(command: tuple[str, ...]) -> list[str]:
    """torchrun's `--max-restarts 2`, `--max_restarts=2` in our words: a job that counts on them is another one without."""
    words = [part for word in command[: command.index(_SCRIPT)] for part in word.split("=", 1)]
    names = [number for number, word in enumerate(words[:-1]) if word.replace("_", "-") == "--max-restarts"]
    return ["--max-restarts", words[names[-1] + 1]] if names else []


def _launch_is_cured(fault: Fault) -> bool:
    """Whether the cure is another word of the launcher's, or another of the variables that the launcher sets."""
    cure, plan = fault.cure, fault.run
    if cure is None:
        return False
    if cure.command is not None and _SCRIPT in cure.command:
        before = plan.command[: plan.command.index(_SCRIPT)]
        if cure.command[: cure.command.index(_SCRIPT)] != before:
            return True
    return cure.env is not None and any(cure.env.get(name) != plan.env.get(name) for name in _SET_BY_LAUNCHER)


def bundled_plan(fault: Fault, plan: RunPlan, venv: Path | None) -> RunPlan:
    """The plan that starts the same script by `phalanx run`. Raises FaultError where that would be another fault."""
    if not can_be_watched(fault):
        raise FaultError(f"{fault.folder}: cannot be started by `phalanx run`: its own way of launching is part of it")
    command = [sys.executable, "-m", "phalanx", "run", "-n", str(plan.world_size), "--framework", fault.framework]
    command += ["--bundle", "bundle", "--timeout", f"{plan.timeout_s:g}"]
    command += ["--on-stall", "abort"]
    command += _restarts(plan.command)
    if venv is not None:
        command += ["--python", str(venv / "bin" / "python")]
    command += plan.command[plan.command.index(_SCRIPT) :]
    env = {name: value for name, value in plan.env.items() if name not in _SET_BY_LAUNCHER}
    if _SOURCE.name not in ("site-packages", "dist-packages"):
        # this very source tree, not what happens to be installed; ranks of another environment see nothing else in it
        env["PYTHONPATH"] = os.pathsep.join([str(_SOURCE), *filter(None, [env.get("PYTHONPATH")])])
    # more time than it gives the job: the verdict comes after the end
    return replace(
        plan, launcher="phalanx run", command=tuple(command), layout="merged", env=env, timeout_s=plan.timeout_s + 60
    )
