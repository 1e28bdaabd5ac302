"""A job as the driver is given it, and what became of it: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phalanx.backends.backend import Backend
from phalanx.frameworks.launching import seats_of
from phalanx.run.ending import Reason
from phalanx.run.spec import JobSpec
from phalanx.sources.secrets import redact_command


class StartError(Exception):
    """The job never got to run: the engine, a node or the agreement between nodes failed. The message says what to change."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be run, on which engine, and what travels there."""

    name: str
    backend: Backend
    spec: JobSpec
    options: Mapping[str, object] = field(default_factory=dict)  # the engine's own
    call: Path | None = None  # the pickled call
    project: Path | None = None  # the packed project
    root: str = ""  # where the project was packed
    path: tuple[str, ...] = ()  # the caller's sys.path
    packages: Mapping[str, str] = field(default_factory=dict)  # that every node must have, with versions
    agreement: str = "error"  # what to do where a node differs: error, warn, off
    checkpoints: str | None = None  # a folder that all attempts share
    agent_python: str | None = None  # the agents' interpreter on other machines; the ranks' otherwise
    start_within: float = 300.0  # seconds for the agents to report once the engine runs them
    silent_for: float = 60.0  # seconds without a word after which a node counts as lost

    @property
    def workers(self) -> int:
        """How many ranks there are."""
        return self.spec.size or 1

    @property
    def framework(self) -> str:
        """Whose variables the ranks are given."""
        return self.spec.framework or "torch"

    def manifest(self) -> dict[str, Any]:
        """What the bundle says of it before it starts."""
        spec = self.spec
        roles = [f"{seat.role}:{seat.index}" for seat in seats_of(self.workers, spec.roles)]
        return {
            "command": redact_command(spec.command) if not spec.is_call else [self.name],
            "name": self.name,
            "size": self.workers,
            "framework": self.framework,
            "roles": roles if spec.roles else [],
            "backend": self.backend.NAME,
        }


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
