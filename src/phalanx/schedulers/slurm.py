"""Jobs as Slurm's controller remembers them, without accounting.

JobId=41 JobName=train UserId=ada(1000) GroupId=ada(1000) … JobState=FAILED Reason=NonZeroExitCode … ExitCode=1:0 … NodeList=n[1-2] … StdErr=/home/ada/slurm-41.out StdOut=…
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_FIELD = re.compile(r"(?:^| )([A-Z][A-Za-z_:/]*)=")
_OWNER = re.compile(r"[^()]*\((\d+)\)")
FAILED = frozenset({"FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE"})
OVER = FAILED | {"COMPLETED", "CANCELLED", "PREEMPTED", "REVOKED"}
_BAD_NODE = ("DOWN", "DRAIN", "FAIL", "NOT_RESPONDING", "*")


class SlurmError(RuntimeError):
    """Slurm could not be asked, or knows no such job; the message says what it said."""


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """One job. `exit` is Slurm's `code:signal`."""

    id: str
    name: str
    state: str
    reason: str
    exit: str
    nodes: str
    seconds: str
    user: int
    group: int
    stdout: str
    stderr: str

    @property
    def has_failed(self) -> bool:
        """Whether it is over, and badly. Who cancels a job knows why."""
        return self.state in FAILED

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Its output files, each once, those that exist."""
        paths = dict.fromkeys(Path(name) for name in (self.stdout, self.stderr) if name.startswith("/"))
        return tuple(path for path in paths if path != Path("/dev/null") and path.is_file())

    @property
    def headline(self) -> str:
        """What Slurm itself knows of the end."""
        code, _, signal = self.exit.partition(":")
        how = f"signal {signal}" if signal not in ("", "0") else f"exit status {code}"
        why = f", {self.reason}" if self.reason not in ("", "None", "NonZeroExitCode") else ""
        return f"Slurm job {self.id} ({self.name}) ended with {self.state} ({how}{why}) after {self.seconds} on {self.nodes}"


def parse(text: str) -> list[SlurmJob]:
    """`scontrol show job -o`, a job a line."""
    return [job for line in text.splitlines() if (job := _job(_fields(line))) is not None]


def _fields(line: str) -> dict[str, str]:
    marks = list(_FIELD.finditer(line))
    ends = [mark.start() for mark in marks[1:]] + [len(line)]
    found: dict[str, str] = {}
    for mark, end in zip(marks, ends, strict=False):
        found.setdefault(mark[1], line[mark.end() : end].strip())  # values may hold blanks; the first of a name counts
    return found


def _job(told: Mapping[str, str]) -> SlurmJob | None:
    if "JobId" not in told or "JobState" not in told:
        return None
    owner, group = (_OWNER.fullmatch(told.get(name, "")) for name in ("UserId", "GroupId"))
    return SlurmJob(
        told["JobId"],
        told.get("JobName", ""),
        told["JobState"],
        told.get("Reason", ""),
        told.get("ExitCode", "0:0"),
        told.get("NodeList", ""),
        told.get("RunTime", "?"),
        int(owner[1]) if owner else -1,
        int(group[1]) if group else -1,
        told.get("StdOut", ""),
        told.get("StdErr", ""),
    )


def find_jobs(job: str | None = None) -> list[SlurmJob]:
    """All jobs that the controller still knows, or one. Raises SlurmError."""
    return parse(_ask("show", "job", "-o", *([job] if job else [])))


def bad_nodes(nodes: str) -> list[str]:
    """The nodes of a list that are not well: `n2: DOWN (Not responding)`."""
    if not nodes or nodes == "(null)":
        return []
    try:
        text = _ask("show", "node", "-o", nodes)
    except SlurmError:
        return []
    found = []
    for line in text.splitlines():
        told = _fields(line)
        if any(word in told.get("State", "") for word in _BAD_NODE):
            why = f" ({told['Reason'].partition(' [')[0]})" if told.get("Reason") else ""
            found.append(f"{told.get('NodeName')}: {told['State']}{why}")
    return found


def comment(job: str, text: str) -> bool:
    """Put a sentence into the job's comment; whether Slurm took it. The controller takes none for a job that has finished, the accounting
    does, where there is one."""
    clean = " ".join(text.split()).replace('"', "'")[:250]
    for words in (
        ("scontrol", "update", f"JobId={job}", f"Comment={clean}"),
        ("sacctmgr", "-i", "modify", "job", "where", f"JobID={job}", "set", f"Comment={clean}"),
    ):
        try:
            _said(*words)
        except SlurmError:
            continue
        return True
    return False


def _ask(*words: str) -> str:
    return _said("scontrol", *words)


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"{command[0]}: {error}") from None
    if done.returncode:
        raise SlurmError(f"{command[0]}: {(done.stderr or done.stdout).strip()[:300] or f'status {done.returncode}'}")
    return done.stdout
