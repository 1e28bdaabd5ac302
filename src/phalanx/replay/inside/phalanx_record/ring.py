"""The last steps' results, and the state they began with, in memory: written out when something happens."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any

from .checkpoints import folder_name, table_of, write_pieces
from .fingerprints import copy_memory
from .memory import Bytes
from .segments import RESULT, SEGMENTS, SNAPSHOT, Cursor, Segment, Space, held_in
from .state import State

ALWAYS_KEPT = 4096  # bytes; smaller results are written at once: they steer the script, and cost nothing
KEPT_AT_START = 1 << 20  # the same before the first step, where objects and settings are exchanged


class Ring:
    """Two stretches of steps: at least `steps` steps, at most twice as many. Each but the first begins with a snapshot."""

    def __init__(self, steps: int, room: int, quick: Any = None) -> None:
        self._steps = steps
        self._quick = quick  # the compiled kernel, which writes into it too
        self._alone: Any = contextlib.nullcontext() if quick is None else quick.ring
        self._room = room
        self._segments = [Segment(room, index) for index in range(SEGMENTS)]
        self._stretch = 1
        self._segments[1].begin(1)
        self.written: set[int] = set()
        self.bytes_kept = 0  # of results, since the start
        self.most_bytes = 0

    @property
    def _segment(self) -> Segment:
        return self._segments[self._stretch % SEGMENTS]

    def reserve(self, number: int, share: list[int], size: int) -> Space:
        """Room for a result; of `size` bytes in all this rank keeps its share."""
        self.bytes_kept += share[1] - share[0]
        with self._alone:
            return self._segment.reserve(RESULT, {"n": number, "share": share, "of": size}, share[1] - share[0])

    def grow(self, need: int) -> None:
        """The compiled kernel found no place for so many bytes."""
        with self._alone:
            self._segment.find(need)

    def release(self) -> None:
        """Nothing is recorded any more: the memory is the job's."""
        for segment in self._segments:
            segment.release()

    @property
    def cursor(self) -> Cursor:
        """Where the next record goes, until the next snapshot."""
        return self._segment.cursor

    def wants_snapshot(self, step: int) -> bool:
        """Whether the state after this step begins a new stretch."""
        return step % self._steps == 0

    def snapshot(self, state: State) -> None:
        """Copy the state, and forget what lies before the older snapshot."""
        self.most_bytes = max(self.most_bytes, sum(segment.bytes_held for segment in self._segments))
        table, total = table_of(state.tensors)
        facts = {"s": state.step, "table": table, "facts": state.facts()}
        with self._alone:
            self._stretch += 1
            self._segment.begin(self._stretch)
            space = self._segment.reserve(SNAPSHOT, facts, total)
            if self._quick is not None and self._quick.shared.is_ring:
                self._quick.keep_in(self.cursor, ALWAYS_KEPT)
        at = space.address
        for tensor in state.tensors.values():
            held = Bytes(tensor)
            copy_memory(at, held.address, held.size)
            at += held.size
        space.commit()

    def write(self, record: str, tensor: Callable[[str, Any], list[int]], line: Callable[..., None]) -> tuple[int, int]:
        """Write all that is held and not yet written; the step it begins at, and how many bytes."""
        self.most_bytes = max(self.most_bytes, sum(segment.bytes_held for segment in self._segments))
        return write_held(self._room, record, tensor, line, self.written)


def write_held(
    room: int,
    record: str,
    tensor: Callable[[str, Any], list[int]],
    line: Callable[..., None],
    written: set[int],
) -> tuple[int, int]:
    """Write what a ring holds to the rank's record: the rank does it, or whoever outlives it."""
    begin, total = 0, 0
    for number, stretch in enumerate(held_in(room)):
        for held in stretch:
            if held.kind == SNAPSHOT:
                step = int(held.facts["s"])
                begin = step if number == 0 else begin
                path = os.path.join(record, folder_name(step, "snapshot"))
                if not os.path.isdir(path):
                    total += write_pieces(held.facts["table"], [held.data(room)], held.facts["facts"], path)
                    line("snapshot", s=step)
            elif held.facts["n"] not in written:
                written.add(held.facts["n"])
                place = tensor(str(held.facts["n"]), held.data(room))
                line("data", n=held.facts["n"], at=place, share=held.facts["share"], of=held.facts["of"])
                total += held.size
    return begin, total


class Listener:
    """A thread that sees a request to write, even while the main thread hangs in a collective."""

    def __init__(self, request: str, act: Callable[[str], None]) -> None:
        self._request, self._act = request, act
        self._stop = threading.Event()
        self._seen = 0.0
        threading.Thread(target=self._run, name="phalanx-record", daemon=True).start()

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            try:
                at = os.stat(self._request).st_mtime
            except OSError:
                continue
            if at > self._seen:
                self._seen = at
                self._act("asked for")

    def close(self) -> None:
        self._stop.set()
