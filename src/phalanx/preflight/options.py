"""What the user asked for: what to look at, and how long to wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from phalanx.preflight.launch_line import LaunchLine

LIBRARIES = frozenset(["gloo", "horovod", "mpi", "nccl", "tensorflow", "torch"])  # what --for knows


def _say_nothing(_text: str) -> None:
    """For whoever wants no progress."""


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """For the probes that send packets."""

    timeout: float = 2.0  # of one connection
    large: bool = True  # also large messages, latency and bandwidth
    store: tuple[str, int] | None = None  # MASTER_ADDR and MASTER_PORT, as given
    say: Callable[[str], None] = _say_nothing
    libraries: frozenset[str] = frozenset()  # as in CheckOptions


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """For the whole check."""

    environment: Mapping[str, str] = field(default_factory=dict)  # beside what the targets have: --env
    paths: tuple[str, ...] = ()  # that must be writable, with space
    space: int = 1 << 30  # bytes that a path must have left
    launch: LaunchLine = field(default_factory=LaunchLine)  # the command that will start the job
    launches: Mapping[str, LaunchLine] = field(default_factory=dict)  # by host, where each has its own
    code: tuple[str, ...] = ()  # scripts and folders that must be alike
    libraries: frozenset[str] = frozenset()  # that the job uses: gloo, nccl, mpi, …; empty = what the variables tell
    same_interpreter: bool = True  # whether the targets run by the job's own interpreter, and so see its packages
    network: bool = True
    large: bool = True
    timeout: float = 2.0
    patience: float = 5.0  # for one target's facts
    say: Callable[[str], None] = _say_nothing
