"""Leaves out what processes print while they are being taken down: it explains nothing about the failure.

[Rank 3] Watchdog caught collective operation timeout: …          the failure
terminate called after throwing an instance of 'c10::…'           how the watchdog ends its process
Exception in _cleanup / __del__ / _exit_function                  what breaks after that
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Event, EventKind
from phalanx.sources.readers.native_aborts import ANNOUNCED

_FINALIZERS = frozenset(
    ("__del__", "_cleanup", "_exit_function", "_run_exitfuncs", "_shutdown", "_run_finalizers", "_shutdown_workers")
)
_WATCHDOG = "nccl-watchdog"


def announced_by_watchdog(events: Iterable[Event]) -> frozenset[int]:
    """Ranks whose own watchdog said that it gives up, and takes the process down."""
    return frozenset(
        event.rank
        for event in events
        if event.kind is EventKind.TIMEOUT and event.source == _WATCHDOG and event.rank is not None
    )


def without_teardown(exceptions: Sequence[Event], events: Sequence[Event]) -> list[Event]:
    """The exceptions that are not part of a process' being taken down after another failure."""
    announced: dict[str, int] = {}
    for event in events:
        if event.kind is EventKind.TIMEOUT and event.source == _WATCHDOG:
            announced[event.file] = min(event.line, announced.get(event.file, event.line))
    failures = [event for event in exceptions if not _is_finalizer(event)]
    return [
        event
        for event in exceptions
        if not _is_abort_of_watchdog(event, announced) and not (_is_finalizer(event) and (failures or announced))
    ]


def _is_abort_of_watchdog(event: Event, announced: dict[str, int]) -> bool:
    """A native exception that a watchdog throws to end its process, or that follows its announcement in the same file."""
    if event.source != "native" or not announced:
        return False
    return ANNOUNCED.search(event.text) is not None or event.line > announced.get(event.file, event.line)


def _is_finalizer(event: Event) -> bool:
    return any(frame.function in _FINALIZERS for frame in event.frames)
