"""Tells from a Python stack what a rank was doing: waiting for peers, waiting for its data, or busy in its own code."""

from __future__ import annotations

import re
from collections.abc import Iterable

from phalanx.blame import Doing
from phalanx.model import Event, EventKind

# Functions and lines in which ranks wait for one another; the backward pass of a wrapped model is one.
WAITS = re.compile(
    r"all_?reduce|all_?gather|reduce_scatter|broadcast|barrier|synchronize|\bwait\b|recv|_engine_run_backward|\bbackward\b|run_backward"
    r"|init_process_group|rendezvous|monitored|all_to_all|poll|mpi_ops"
)
_LAUNCHER = re.compile(
    r"torch/distributed/(?:run|launcher|elastic)|horovod/runner|torch/multiprocessing/spawn|subprocess\.py|accelerate/commands"
)
# Where a rank waits for its own data, not for peers: a loader whose workers stand still, a queue that nobody fills.
_FEEDS = re.compile(r"torch/utils/data/dataloader\.py |/(?:queue|queues)\.py get$")
_INNERMOST = 6  # frames: who waits is at the end of its stack
_IMPORTS = 8


def doing_of(event: Event) -> Doing:
    """What the thread of this stack was doing."""
    if any(_FEEDS.search(f"{frame.path} {frame.function}") for frame in event.frames):
        return Doing.DATA
    inner = event.frames[-_INNERMOST:]
    if any(WAITS.search(frame.function) or WAITS.search(frame.source) for frame in inner):
        return Doing.WAITING
    return Doing.RUNNING


def main_stacks(events: Iterable[Event]) -> list[Event]:
    """Of each process that was asked or interrupted where it stood, the last stack of the thread that runs the script."""
    found: dict[tuple[str, int | None, object], Event] = {}
    for event in events:
        if event.kind is not EventKind.STACK or is_launcher(event):
            continue
        process = (event.file, event.rank, event.data.get("pid"))
        if process not in found or _runs_script(event) or not _runs_script(found[process]):
            found[process] = event
    return list(found.values())


def _runs_script(event: Event) -> bool:
    return any(frame.function == "<module>" or frame.is_user_code for frame in event.frames)


def is_launcher(event: Event) -> bool:
    """A launcher's own stack, which says nothing of a rank."""
    return any(_LAUNCHER.search(frame.path) for frame in event.frames) and not any(
        frame.is_user_code for frame in event.frames
    )


def is_importing(event: Event) -> bool:
    """The process was still importing modules."""
    return any(frame.path.startswith("<frozen importlib") for frame in event.frames[-_IMPORTS:])
