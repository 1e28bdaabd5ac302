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
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from phalanx.backends.backend import (
    BackendError,
    Command,
    Plan,
    PlannedFile,
    Reach,
    Request,
    Started,
    State,
    Streams,
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
_ENDED = (State.DONE, State.FAILED, State.CANCELLED)
_ASK_EVERY = 1.0  # seconds; the controller serves the whole cluster
_ANSWERS_WITHIN = 60.0


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


class SlurmJob:
    """A job in Slurm's queue or on its nodes."""

    def __init__(self, number: str, log: Path) -> None:
        self.number = number
        self._log = log
        self._last = (State.QUEUED, "")
        self._asked_at = 0.0
        self._cancels = 0

    def streams(self) -> Mapping[int, Streams]:
        """None: agents connect by themselves."""
        return {}

    def follow(self) -> tuple[State, str]:
        """As the controller sees it; the last known state while it does not answer."""
        if self._last[0] in _ENDED or time.monotonic() - self._asked_at < _ASK_EVERY:
            return self._last
        self._asked_at = time.monotonic()
        try:
            self._last = _state_of(_call("scontrol", "show", "job", "--oneliner", self.number))
        except BackendError as error:
            if "invalid job id" in str(error).lower():  # forgotten some minutes after its end
                self._last = (State.DONE, "")
            else:
                return self._last[0], str(error)
        return self._last

    def cancel(self) -> None:
        """First as `scancel` does it, with a warning to the agents; then by force."""
        self._cancels += 1
        self._asked_at = 0.0
        with contextlib.suppress(BackendError):
            if self._cancels > 1:
                _call("scancel", "--signal=KILL", "--full", self.number)
            _call("scancel", self.number)

    def collect(self) -> Mapping[str, str]:
        """What srun and the agents said, and how Slurm tells of the job."""
        if self.follow()[0] not in _ENDED:
            self.cancel()
        said = {"slurm": last_words(self._log)}
        with contextlib.suppress(BackendError):
            said["slurm-job"] = _call("scontrol", "show", "job", self.number).strip()
        return {name: text for name, text in said.items() if text}


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


def _call(*command: str) -> str:
    """A command of Slurm's. Raises BackendError with its own words."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ANSWERS_WITHIN, check=False, stdin=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not name.startswith(("SBATCH_", "SLURM_JOB"))},
        )  # fmt: skip
    except FileNotFoundError:
        raise BackendError(f"there is no {command[0]} here: Slurm's commands must be installed and on PATH") from None
    except subprocess.TimeoutExpired:
        raise BackendError(f"{command[0]} did not answer within {_ANSWERS_WITHIN:g} s") from None
    if done.returncode:
        words = " ".join(line.strip() for line in done.stderr.strip().splitlines()[-3:])
        raise BackendError(f"{command[0]}: {words or f'exit status {done.returncode}'}")
    return done.stdout
