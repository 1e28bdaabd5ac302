"""A fault of the zoo: the typed form of `faults/<name>/fault.toml`.

A folder looks like this:

    faults/torch-uneven-steps/
      fault.toml     what is broken, what the truth is, how to run it
      train.py       the job
      cured.py       the same job mended (or a [cured] table in fault.toml)
      recorded/      what a user would have after the run
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

FRAMEWORKS = ("torch", "tensorflow", "keras", "horovod")
STAGES = (
    "package build & import",
    "communication setup",
    "data and model preparation",
    "training & evaluation",
)
SPLITS = ("train", "test")
LAYOUTS = ("merged", "per-rank", "per-node", "torchrun-logdir")

# What is set aside for one process: the greatest share of a process that was weighed (242, 384, 300 and 205 MB, CPU builds,
# pages shared by ranks counted once) and a quarter more. A job that needs more says so; `faults run` tells where it should.
_MEMORY_MB = {"torch": 300, "tensorflow": 480, "keras": 380, "horovod": 260}


class FaultError(ValueError):
    """A fault folder that cannot be used; the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How a fault's job is started and what a user keeps of it.

    `env` holds for every process; an empty value takes the variable away. In the layout `per-rank`,
    `rank_env` changes variables of single ranks and `start` names the ranks that are started at all.
    `prepare` are commands that run before the job and are not recorded. A fault that does not end the
    job says `ends_well`; what it prints instead of ending is `shows`, which the cured job must not print.
    """

    launcher: str
    command: tuple[str, ...]
    world_size: int
    timeout_s: float
    layout: str
    env: Mapping[str, str] = field(default_factory=dict)
    rank_env: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    start: tuple[int, ...] = ()
    prepare: tuple[tuple[str, ...], ...] = ()
    ends_well: bool = False
    shows: str | None = None

    @property
    def started_ranks(self) -> tuple[int, ...]:
        return self.start or tuple(range(self.world_size))


@dataclass(frozen=True, slots=True)
class Cure:
    """What changes in the run when the cure is not in the script; None leaves a part as it is."""

    command: tuple[str, ...] | None = None
    env: Mapping[str, str] | None = None
    rank_env: Mapping[int, Mapping[str, str]] | None = None
    start: tuple[int, ...] | None = None
    prepare: tuple[tuple[str, ...], ...] | None = None
    environment: str | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """What must be there for a run: packages, Debian packages, memory, or the machine for itself."""

    python: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()
    memory_mb: int | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """One folder of the zoo. A healthy job has no symptom, cause, stage or fixes."""

    folder: Path
    title: str
    framework: str
    healthy: bool
    split: str
    run: RunPlan
    symptom: str | None = None
    cause: str | None = None
    stage: str | None = None
    distributed_specific: bool | None = None
    culprit_ranks: tuple[int, ...] = ()
    accepted_fixes: tuple[str, ...] = ()
    needs: Needs = field(default_factory=Needs)
    cure: Cure | None = None
    # part of the fast subset that `make test` really runs
    quick: bool = False
    # of the silent wing: the kind of fault, what an expert would say, the text of the line at fault in train.py, and the words
    # after `phalanx verify -n N` where they are not those of the job
    group: str | None = None
    says: str | None = None
    line: str | None = None
    verify: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def recorded(self) -> Path:
        return self.folder / "recorded"

    @property
    def memory_mb(self) -> int:
        """The memory that the scheduler sets aside."""
        if self.needs.memory_mb is not None:
            return self.needs.memory_mb
        # a launcher is a process of its own, with the framework imported
        processes = len(self.run.started_ranks) + (self.run.layout != "per-rank")
        return processes * _MEMORY_MB[self.framework]

    @property
    def has_cure(self) -> bool:
        return self.cure is not None or (self.folder / "cured.py").is_file()

    def fingerprint(self) -> str:
        """Changes with any file of the folder that a run depends on; what was recorded is left out.

        Of fault.toml only what is run counts: a corrected label does not make a proven cure doubtful.
        """
        # only what differs from the default, so that a key added to the format later leaves old proofs valid
        said = [
            f"{part.name}={value!r}"
            for table in (self.run, self.cure)
            if table is not None
            for part in fields(table)
            if (value := getattr(table, part.name)) not in (None, False, (), {})
        ]
        digest = hashlib.sha256("\n".join([*said, *self.needs.python]).encode())
        for file in sorted(self.folder.rglob("*")):
            inner = file.relative_to(self.folder)
            if file.is_file() and inner.parts[0] not in ("recorded", "fault.toml") and "__pycache__" not in inner.parts:
                digest.update(f"{inner}\0".encode() + file.read_bytes())
        return digest.hexdigest()[:16]
