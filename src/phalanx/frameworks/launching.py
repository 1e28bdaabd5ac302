"""How the ranks of each framework find one another: what a framework's file says of it, and how it is found.

A framework that can be launched has, beside what `__init__` asks for:
  IMPORTS                   top-level modules whose import tells it
  ports_needed(size)        how many ports its ranks meet at
  variables(seat, meeting)  what one rank has to find in its environment
and may have `NEEDS_STORE` (a key-value store over HTTP runs beside the job) and `OWN_DEVICES` (each rank must see only its
own devices).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

from phalanx import frameworks

# The order of a cluster specification, and so of the ranks.
ROLES = ("chief", "worker", "ps", "evaluator")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank of a job on several nodes sits: its node, and its number among that node's ranks."""

    node: int
    nodes: int
    local_rank: int
    local_size: int


@dataclass(frozen=True, slots=True)
class Seat:
    """One rank's place in the job: its number among all, and among those of its role. Without a `place` all ranks are on
    one node."""

    rank: int
    size: int
    role: str = "worker"
    index: int = 0
    place: Place | None = None

    @property
    def at(self) -> Place:
        """Node and local number, also for a job on one node."""
        return self.place or Place(0, 1, self.rank, self.size)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where and how the ranks of one attempt meet. Nobody else can be given the ports while the job runs."""

    ports: tuple[int, ...]
    run_id: str
    host: str = "127.0.0.1"
    roles: tuple[Seat, ...] = ()
    loopback: str = "lo"  # name of the interface that `host` is on
    store_port: int | None = None
    attempt: int = 0
    max_restarts: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)  # what every rank has anyway
    hosts: tuple[str, ...] = ()  # by rank, where they are on several nodes; `host` is rank 0's

    def host_of(self, rank: int) -> str:
        """The address at which a rank can be reached."""
        return self.hosts[rank] if self.hosts else self.host


class Launchable(Protocol):
    """What a framework module offers to a launcher."""

    NAME: str
    IMPORTS: tuple[str, ...]

    def ports_needed(self, size: int) -> int:
        """How many ports the ranks meet at."""

    def variables(self, seat: Seat, meeting: Meeting) -> dict[str, str]:
        """The environment of one rank, without what it has anyway."""


@cache
def load_launchable() -> dict[str, Launchable]:
    """Every framework that can be launched, by name."""
    names = [module.name for module in iter_modules(frameworks.__path__)]
    modules = [import_module(f"phalanx.frameworks.{name}") for name in names]
    found = [cast(Launchable, module) for module in modules if hasattr(module, "variables")]
    return {framework.NAME: framework for framework in found}


def needs_store(framework: Launchable) -> bool:
    """Whether its ranks meet at a key-value store that the launcher has to run."""
    return bool(getattr(framework, "NEEDS_STORE", False))


def has_own_devices(framework: Launchable) -> bool:
    """Whether a rank must be shown its own devices only, because it would take all that it sees."""
    return bool(getattr(framework, "OWN_DEVICES", False))


def seats_of(size: int, roles: Mapping[str, int]) -> tuple[Seat, ...]:
    """The ranks in order: chief, workers, parameter servers, evaluator; all workers where no roles are given."""
    counts = {role: roles.get(role, 0) for role in ROLES} if roles else {"worker": size}
    members = [(role, index) for role in ROLES for index in range(counts.get(role, 0))]
    return tuple(Seat(rank, len(members), role, index) for rank, (role, index) in enumerate(members))


def serves(seat: Seat, seats: tuple[Seat, ...]) -> bool:
    """Whether this rank waits for work until the others are done, and is then to be ended: parameter servers, and their
    workers where a chief gives the orders."""
    roles = {other.role for other in seats}
    return seat.role == "ps" or (seat.role == "worker" and {"ps", "chief"} <= roles)
