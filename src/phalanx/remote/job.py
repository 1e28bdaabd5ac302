"""A job as the driver is given it, and what became of it: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phalanx.backends.backend import Backend
from phalanx.run.ending import Reason


class StartError(Exception):
    """The job never got to run: the engine, a node or the agreement between nodes failed. The message says what to change."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be run, where, and how."""

    name: str
    backend: Backend
    workers: int
    framework: str
    is_call: bool  # a function call; else a script or program
    command: tuple[str, ...] = ()
    is_module: bool = False
    is_program: bool = False
    call: Path | None = None  # the pickled call
    project: Path | None = None  # the packed project
    root: str = ""  # where the project was packed
    path: tuple[str, ...] = ()  # the caller's sys.path
    options: Mapping[str, object] = field(default_factory=dict)
    gpus: int | None = None
    devices: str | None = None
    roles: Mapping[str, int] = field(default_factory=dict)  # of TensorFlow's tasks
    virtual_devices: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)  # that every node must have, with versions
    agreement: str = "error"  # what to do where a node differs: error, warn, off
    timeout: float | None = None
    retries: int = 0
    fewest: int | None = None  # workers below which the job is not tried again after a node was lost
    checkpoints: str | None = None  # a folder that all attempts share
    grace: float = 5.0
    on_stall: str = "report"
    inside: bool = True
    stall_after: float = 8.0
    stall_at_most: float = 600.0
    python: str | None = (
        None  # the ranks' interpreter; the agent's too, but for this machine, unless the next says otherwise
    )
    agent_python: str | None = None
    start_within: float = 300.0  # seconds for the agents to report once the engine runs them
    silent_for: float = 60.0  # seconds without a word after which a node counts as lost


@dataclass(frozen=True, slots=True)
class Exit:
    """How a rank ended."""

    rank: int
    code: int
    how: str
    order: int
    by: str | None  # whom it was ended for; None if it ended by itself
    host: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job."""

    reason: Reason
    bundle: Path
    results: Path  # of the last attempt: rankN/result.pickle, rankN/exception.pickle
    report: Mapping[str, Any] | None
    exits: Mapping[int, Exit]
    hosts: Mapping[int, str]
    size: int
    attempts: int

    @property
    def is_good(self) -> bool:
        """Whether all ranks ended well."""
        return self.reason.status == 0

    @property
    def culprits(self) -> tuple[int, ...]:
        """Who broke the job: by the verdict; else who failed first by itself. Never a rank that was ended by us."""
        verdict = (self.report or {}).get("verdict") or {}
        named = tuple(int(rank) for rank in verdict.get("culprit_ranks", ()))
        if named:
            return named
        own = sorted(
            (one for one in self.exits.values() if one.code != 0 and one.by is None), key=lambda one: one.order
        )
        return tuple(one.rank for one in own[:1])

    @property
    def victims(self) -> tuple[int, ...]:
        """Who suffered from it."""
        verdict = (self.report or {}).get("verdict") or {}
        if verdict.get("culprit_ranks"):
            return tuple(int(rank) for rank in verdict.get("victim_ranks", ()))
        return tuple(sorted(one.rank for one in self.exits.values() if one.code != 0 and one.rank not in self.culprits))
