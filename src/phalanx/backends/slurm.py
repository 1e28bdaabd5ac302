"""Slurm: a batch script that starts one agent on each node with `srun`.

    train.on("slurm", partition="gpu", nodes=2)      phalanx run -n 8 --on slurm --with nodes=2 train.py

The script is a file that can be read, kept and changed. The state comes from `scontrol`, which needs no accounting.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from phalanx.backends.asking import AskedJob, ask
from phalanx.backends.backend import (
    BackendError,
    Command,
    Plan,
    PlannedFile,
    Reach,
    Request,
    Started,
    State,
    fewer_nodes,
    spread,
)
from phalanx.backends.words import last_words

NAME = "slurm"
REACH = Reach.NETWORK
OPTIONS: Mapping[str, str] = {
    "nodes": "how many nodes share the workers; 1 unless said",
    "partition": "as for sbatch",
    "account": "as for sbatch",
    "qos": "as for sbatch",
    "constraint": "as for sbatch",
    "reservation": "as for sbatch",
    "nodelist": "as for sbatch",
    "exclude": "as for sbatch",
    "time": "limit as for sbatch (2:00:00); else the call's own time-out and ten minutes more",
    "mem": "memory of each node, as for sbatch",
    "cpus_per_worker": "processors for each worker",
    "gres": "as for sbatch; else gpus=… of the call is asked for",
    "exclusive": "yes: nodes that nobody else uses meanwhile",
}
SCRIPT, LOG = "job.sbatch", "slurm.log"
_AS_GIVEN = ("partition", "account", "qos", "constraint", "reservation", "nodelist", "exclude", "mem", "gres")
_VALUE = re.compile(r"[A-Za-z0-9_.,:=+@%/&|!*()\[\]-]{1,500}")
_MORE_MINUTES = 10  # beyond the call's own time-out, which is to come first: it says more
# What a task of srun is told about itself is not true of the ranks below it, and some frameworks would believe it.
_TOLD_TO_TASKS = "SLURM_PROCID,SLURM_LOCALID,SLURM_NTASKS,SLURM_NPROCS,SLURM_TASKS_PER_NODE,SLURM_STEP_,SLURM_TASK_PID,SLURM_GTIDS,PMI"
_STATES = {
    "PENDING": State.QUEUED,
    "REQUEUED": State.QUEUED,
    "RESV_DEL_HOLD": State.QUEUED,
    "CONFIGURING": State.STARTING,
    "RUNNING": State.RUNNING,
    "COMPLETING": State.RUNNING,
    "SUSPENDED": State.RUNNING,
    "STOPPED": State.RUNNING,
    "COMPLETED": State.DONE,
    "CANCELLED": State.CANCELLED,
}  # all others (FAILED, NODE_FAIL, TIMEOUT, OUT_OF_MEMORY, PREEMPTED, BOOT_FAIL, DEADLINE …) are failures
_ASK_EVERY = 1.0  # seconds; the controller serves the whole cluster


def plan(request: Request) -> Plan:
    """The batch script, and the command that queues it."""
    nodes = request.count("nodes", 1)
    layout = spread(request.workers, nodes)
    script = request.folder / SCRIPT
    notes = (
        "one agent a node; it connects to this machine, which must be reachable from the nodes",
        f"{request.folder} and the interpreter must be seen by all nodes under the same path",
    )
    files = (PlannedFile(script, _script(request, layout)),)
    return Plan(layout, (Command(("sbatch", "--parsable", str(script)), "queue the job"),), files, notes=notes)


def without(options: Mapping[str, object], nodes: tuple[str, ...]) -> Mapping[str, object]:
    """So many nodes fewer; Slurm is not to give the lost ones again."""
    names = [name for name in nodes if "#" not in name]  # two agents on one machine share its name
    excluded = ",".join(filter(None, [str(options.get("exclude") or ""), *names]))
    return fewer_nodes(options, len(nodes)) | ({"exclude": excluded} if excluded else {})


def start(plan: Plan, request: Request) -> Started:
    """Have Slurm look at the request, then queue it. Raises BackendError."""
    script = str(plan.files[0].path)
    _call("sbatch", "--test-only", script)
    number = _call(*plan.commands[0].argv).strip().splitlines()[-1].partition(";")[0]
    if not number.isdigit():
        raise BackendError(f"sbatch answered {number[:200]!r} instead of the job's number")
    return SlurmJob(number, request.folder / LOG)


class SlurmJob(AskedJob):
    """A job in Slurm's queue or on its nodes."""

    def __init__(self, number: str, log: Path) -> None:
        super().__init__(_ASK_EVERY, ("scancel", number), _environment())
        self.number = number
        self._log = log

    def _look(self) -> tuple[State, str]:
        try:
            return _state_of(_call("scontrol", "show", "job", "--oneliner", self.number))
        except BackendError as error:
            if "invalid job id" in str(error).lower():  # forgotten some minutes after its end
                return State.DONE, ""
            raise

    def _end(self, by_force: bool) -> None:
        with contextlib.suppress(BackendError):
            if by_force:
                _call("scancel", "--signal=KILL", "--full", self.number)
            _call("scancel", self.number)

    def _part(self) -> dict[str, str]:
        self.follow()
        if not self.has_ended:
            self._end(by_force=False)
        said = {"slurm": last_words(self._log)}
        with contextlib.suppress(BackendError):
            said["slurm-job"] = _call("scontrol", "show", "job", self.number).strip()
        return said


def _script(request: Request, layout: tuple[int, ...]) -> str:
    wanted = {
        "job-name": request.name,
        "nodes": str(len(layout)),
        "ntasks-per-node": "1",
        "output": str(request.folder / LOG),
        "open-mode": "append",
    }
    wanted |= {name: request.option(name) for name in _AS_GIVEN if name in request.options}
    cores = request.count("cpus_per_worker", 1) * max(layout) if "cpus_per_worker" in request.options else None
    if cores is not None:
        wanted["cpus-per-task"] = str(cores)
    if request.gpus and "gres" not in request.options:
        wanted["gpus-per-node"] = str(request.gpus * max(layout))
    if limit := _limit(request):
        wanted["time"] = limit
    for name, value in wanted.items():
        if name not in ("output",) and not _VALUE.fullmatch(value):
            raise BackendError(f"{name}={value!r}: not a value that sbatch takes")
    lines = ["#!/bin/bash", *(f"#SBATCH --{name}={_quoted(value)}" for name, value in wanted.items())]
    lines += ["#SBATCH --no-requeue  # phalanx tries again by itself, and says why"]
    lines += ["#SBATCH --exclusive"] if request.option("exclusive").lower() in ("yes", "true", "1") else []
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(request.environment.items())]
    # An agent that is lost must not take the others with it: they still have to tell what they saw.
    step = ["srun", f"--nodes={len(layout)}", f"--ntasks={len(layout)}", "--ntasks-per-node=1"]
    step += ["--kill-on-bad-exit=0", "--mpi=none", *([f"--cpus-per-task={cores}"] if cores else [])]
    agent = [*request.agent, "--node-in", "SLURM_NODEID", "--name-in", "SLURMD_NODENAME", "--forget", _TOLD_TO_TASKS]
    return "\n".join([*lines, shlex.join([*step, *agent]), ""])


def _limit(request: Request) -> str:
    if "time" in request.options:
        return request.option("time")
    return str(math.ceil(request.timeout / 60) + _MORE_MINUTES) if request.timeout is not None else ""


def _quoted(value: str) -> str:
    """As sbatch reads its own lines. Raises BackendError for what no quoting can carry."""
    if re.search(r"[\n\r\"\\]", value):
        raise BackendError(f"{value!r}: sbatch cannot be given this path; choose a folder without such characters")
    return f'"{value}"' if re.search(r"[\s'#;]", value) else value


def _state_of(told: str) -> tuple[State, str]:
    """From `JobId=5 JobName=x … JobState=PENDING Reason=Resources …`."""
    found = dict(re.findall(r"(?:^|\s)(JobState|Reason|ExitCode)=(\S*)", told))
    name = found.get("JobState", "")
    state = _STATES.get(name, State.FAILED)
    reason = found.get("Reason", "None")
    if state is State.FAILED:
        code = found.get("ExitCode", "0:0")
        parts = [name, *([f"exit status {code}"] if code != "0:0" else []), *([reason] if reason != "None" else [])]
        return state, ", ".join(parts)
    return state, "" if reason == "None" or state is State.RUNNING else reason


def _environment() -> dict[str, str]:
    """Without what a batch job around us would have Slurm's commands believe."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SBATCH_", "SLURM_JOB"))}


def _call(*command: str) -> str:
    """A command of Slurm's. Raises BackendError with its own words."""
    return ask(command, _environment())
