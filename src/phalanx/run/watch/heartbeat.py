"""The supervisor's side of a rank's heartbeat: reads the record that the watch inside keeps, and asks for a dump."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from phalanx.run.watch.inside import phalanx_inside as record

FOLDER = Path(record.__file__).parent  # what leads PYTHONPATH in a rank
_TRIES = 4
_PHASES = {
    record.STARTED: "starting",
    record.IMPORTED: "connecting",
    record.CONNECTED: "training",
    record.LEAVING: "leaving",
}
_TURNING_S = 4.0  # how long ranks may take to tell whether they turn in a circle: it takes them a second


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """How far one process group came on one rank, by the flight recorder's count; -1 where it does not count."""

    enqueued: int
    started: int
    completed: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """One look at the record."""

    pid: int
    beats: int
    time: float  # of the monotonic clock, which all processes of a host share
    phase: int
    enqueued: int  # in all groups
    completed: int
    answered: int  # the last request whose files are there
    looks: int = 0  # how often the main thread was looked at
    in_data: int = 0  # of these: in a data loader
    in_collective: int = 0  # of these: in a collective that was not done
    groups: Mapping[str, GroupCounts] = field(default_factory=dict)
    moves: int = 0  # of the main thread, where there is no recorder
    step: int | None = None  # as a callback told
    told_phase: str = ""

    @property
    def connected(self) -> bool:
        """Whether the rank has a process group."""
        return self.phase == record.CONNECTED

    @property
    def phase_name(self) -> str:
        """How far the rank came, for people."""
        return self.told_phase or _PHASES.get(self.phase, "")

    @property
    def outstanding(self) -> bool:
        """Whether a collective was entered and is not done."""
        return any(group.enqueued > group.completed for group in self.groups.values())

    @property
    def progress(self) -> int:
        """A number that grows with every collective entered or left; with every move, where these are counted."""
        return self.enqueued + self.completed + self.moves + (self.step or 0)


class HeartbeatFile:
    """The record of one rank. It is made by the rank; until then there is nothing to read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def read(self) -> Heartbeat | None:
        """The record as it is now; None if there is none, or a write was under way at every try."""
        page = self._page()
        for _ in range(_TRIES):
            if len(page) < record.PAGE or page[:8] != record.MAGIC:
                return None
            sequence, pid, beats, nanoseconds, phase, count, enqueued, completed = record.HEAD.unpack_from(
                page, record.HEAD_AT
            )
            again = self._page()
            if (
                sequence % 2 == 0
                and again[record.HEAD_AT : record.HEAD_AT + 8] == page[record.HEAD_AT : record.HEAD_AT + 8]
            ):
                break
            page = again
        else:
            return None
        looks, in_data, in_collective = record.PLACES.unpack_from(page, record.PLACES_AT)
        (answered,) = record.REQUEST.unpack_from(page, record.ANSWER_AT)
        (moves,) = record.REQUEST.unpack_from(page, record.MOVES_AT)
        groups = {}
        for number in range(min(count, record.MOST_GROUPS)):
            name, *counts = record.GROUP.unpack_from(page, record.GROUPS_AT + number * record.GROUP.size)
            groups[name.rstrip(b"\0").decode("utf-8", "replace")] = GroupCounts(*counts)
        step, told_at, told_phase = record.STEP.unpack_from(page, record.STEP_AT)
        told = (step, told_phase.rstrip(b"\0").decode("utf-8", "replace")) if told_at else (None, "")
        calls = (enqueued, completed, answered)
        return Heartbeat(
            pid, beats, nanoseconds / 1e9, phase, *calls, looks, in_data, in_collective, groups, moves, *told
        )

    def ask(self, number: int) -> None:
        """Ask the rank to write its stacks and its flight recorder under this number."""
        if self._descriptor is not None:
            os.pwrite(self._descriptor, record.REQUEST.pack(number), record.REQUEST_AT)

    def ask_turning(self) -> int:
        """Ask the rank whether its main thread turns in a circle; the number of the question."""
        (told,) = record.REQUEST.unpack_from(self._page().ljust(record.PAGE, b"\0"), record.TURN_TOLD_AT)
        if self._descriptor is not None:
            os.pwrite(self._descriptor, record.REQUEST.pack((told >> 2) + 1), record.TURN_ASKED_AT)
        return int(told >> 2) + 1

    def turning(self, number: int) -> int | None:
        """The answer (UNKNOWN, TURNS or CHANGES of the watch inside); None while there is none."""
        (told,) = record.REQUEST.unpack_from(self._page().ljust(record.PAGE, b"\0"), record.TURN_TOLD_AT)
        return int(told & 3) if told >> 2 >= number else None

    def close(self) -> None:
        """Release the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _page(self) -> bytes:
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                return b""
        try:
            return os.pread(self._descriptor, record.PAGE, 0)
        except OSError:
            return b""


def who_turns(beats: Mapping[int, HeartbeatFile]) -> dict[int, int]:
    """What the watch inside finds out about the loops that ranks are in; those that do not answer in time are left out."""
    asked = {rank: beat.ask_turning() for rank, beat in beats.items()}
    told: dict[int, int] = {}
    until = time.monotonic() + _TURNING_S
    while len(told) < len(asked) and time.monotonic() < until:
        time.sleep(0.1)
        for rank, number in asked.items():
            if rank not in told and (answer := beats[rank].turning(number)) is not None:
                told[rank] = answer
    return told
