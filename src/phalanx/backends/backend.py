"""What an engine's file offers: the request and the plan as values, and the protocol that the driver follows.

A backend is one module in this folder (third parties: an entry point in the group `phalanx.backends`) with

  NAME                  how a user chooses it: `train.on("slurm")`, `phalanx run --on slurm`
  REACH                 how its agents talk to the driver: by `Reach.STREAMS` the engine carries the agent's standard input and
                        output; by `Reach.LOOPBACK` or `Reach.NETWORK` the agent connects to a port at which the driver listens
  OPTIONS               what a user may say to it, each with one line of explanation; anything else is refused
  plan(request)         what will be written and run, and who sits where. Pure. Raises BackendError where it cannot be
  start(plan, request)  does it and returns a `Started`

and may have `without(options, nodes)`: the user's options for a job that is to do without these nodes, by their names in the plan;
and `ENDS_ALL = True` where the engine ends all agents as soon as one is lost, so that only the first is known to be.

The driver writes the plan's files (they are private to the user), calls `start`, waits until each agent has reported, and
then speaks to the agents alone. `follow` is asked about twice a second, `cancel` at most twice, `collect` once, at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Protocol


class BackendError(Exception):
    """The job cannot be started as it was asked for; the message says what to change."""


class Reach(StrEnum):
    """How an agent talks to the driver."""

    STREAMS = "streams"
    LOOPBACK = "loopback"
    NETWORK = "network"


class State(StrEnum):
    """Where a job is, as its engine sees it."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Request:
    """What the driver asks an engine for: so many agents, one on each node."""

    name: str  # of letters, digits, dots, dashes and underscores only
    workers: int
    agent: tuple[str, ...]  # the agent's command, complete but for what the engine has to add
    folder: Path  # the job's folder on the driver's machine; the plan's files go below it
    gpus: int | None = None  # for each worker; None where the user said nothing
    environment: Mapping[str, str] = field(default_factory=dict)  # for the agent; no secrets
    token: str = ""  # proves agent and driver to one another. In files (mode 0600) or variables, never in arguments
    timeout: float | None = None  # seconds, for engines that want a limit
    options: Mapping[str, object] = field(default_factory=dict)  # what the user said to this backend

    def option(self, name: str, otherwise: str = "") -> str:
        """One of the user's options as text."""
        value = self.options.get(name)
        return otherwise if value is None else str(value)

    def count(self, name: str, otherwise: int) -> int:
        """One of the user's options as a number from 1. Raises BackendError."""
        value = self.options.get(name, otherwise)
        try:
            number = int(str(value))
        except ValueError:
            number = 0
        if number < 1:
            raise BackendError(f"{name}={value}: give a whole number from 1")
        return number


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that the engine needs. Secret ones are not shown by --dry-run."""

    path: Path
    text: str
    is_secret: bool = False
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class Command:
    """Something that will be run here, and what for."""

    argv: tuple[str, ...]
    purpose: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)  # in addition to the driver's own


@dataclass(frozen=True, slots=True)
class Plan:
    """All that will happen. `layout` tells how many workers each node gets, node 0 first; ranks are dealt out in this order."""

    layout: tuple[int, ...]
    commands: tuple[Command, ...]
    files: tuple[PlannedFile, ...] = ()
    nodes: tuple[str, ...] = ()  # their names, where they are known before
    notes: tuple[str, ...] = ()  # what else will happen, one sentence each


@dataclass(frozen=True, slots=True)
class Streams:
    """Both directions of one agent, for engines that carry them."""

    to_agent: BinaryIO
    from_agent: BinaryIO


class Started(Protocol):
    """A job that an engine has been given."""

    def streams(self) -> Mapping[int, Streams]:
        """By node; empty where agents connect by themselves."""

    def follow(self) -> tuple[State, str]:
        """Where the job is, and the engine's reason in a few words (`Resources`, `exit status 255: no route to host`)."""

    def cancel(self) -> None:
        """End it, whatever state it is in. The second call does not ask kindly. Must not block for long."""

    def collect(self) -> Mapping[str, str]:
        """What the engine itself has printed, by a name (`node1`, `slurm`): evidence. Nothing of the job is left after it."""


class Backend(Protocol):
    """What a backend's module offers."""

    NAME: str
    REACH: Reach
    OPTIONS: Mapping[str, str]

    def plan(self, request: Request) -> Plan:
        """Pure. Raises BackendError."""

    def start(self, plan: Plan, request: Request) -> Started:
        """Give it to the engine. Raises BackendError."""


def spread(workers: int, nodes: int) -> tuple[int, ...]:
    """So many workers on each node, as evenly as can be. Raises BackendError."""
    if nodes > workers:
        raise BackendError(
            f"{workers} workers cannot be spread over {nodes} nodes: ask for fewer nodes or more workers"
        )
    each, more = divmod(workers, nodes)
    return tuple(each + (node < more) for node in range(nodes))


def fewer_nodes(options: Mapping[str, object], lost: int) -> dict[str, object]:
    """The options of a job that is to do without so many nodes."""
    return {**options, "nodes": max(1, int(str(options.get("nodes", 1))) - lost)}
