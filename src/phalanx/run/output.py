"""Reads the output of all ranks in one loop: into the bundle whole, to the watch by line, to the screen folded."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from phalanx.run.fold import Fold, Said
from phalanx.sources.secrets import OutputRedactor

_READ = 1 << 16
_LONGEST_LINE = 1 << 18
_LONGEST_WORD = 4096  # where a longer line is cut, if it can be at a blank: no secret is cut in two
_MOST_LEFT = (
    1 << 21
)  # bytes taken from the pipe of a rank that is gone; a pipe holds less, unless somebody still writes
_IDLE = 1.0  # seconds after which the beginning of a line is written down as it is
_REPAINTED = 10.0  # seconds between two states of a progress bar that are shown


class Listener(Protocol):
    """Who else wants the output."""

    def write_output(self, number: int, rank: int, data: bytes, is_error: bool) -> None:
        """A piece of it, whole lines wherever possible."""

    def heard(self, rank: int, line: bytes) -> None:
        """One line."""


class Shows(Protocol):
    """Where folded lines are shown."""

    shows: bool  # where it does not, lines are not folded for it

    def show(self, lines: list[Said], is_alone: bool) -> None:
        """Lines of ranks, in order."""


@dataclass(slots=True)
class _Stream:
    rank: int
    is_error: bool
    rest: bytes = b""
    written: int = 0  # how much of `rest` is in the bundle already
    since: float = 0.0
    repainted: float = float("-inf")
    redactor: OutputRedactor = field(default_factory=OutputRedactor)


class Output:
    """The pipes of one attempt."""

    def __init__(self, number: int, ranks: Sequence[int], screen: Shows, listener: Listener) -> None:
        self._number = number
        self._size = len(ranks)
        self._screen = screen
        self._listener = listener
        self._fold = Fold(ranks)
        self._streams: dict[int, _Stream] = {}
        self.selector = selectors.DefaultSelector()
        self.last_repaint = b""

    def open_pipes(self, rank: int, secrets: frozenset[str] = frozenset()) -> tuple[int, int]:
        """Two pipes for a rank, out of which these secrets are taken; returns the ends that it writes to, which are the caller's to close."""
        ends = []
        for is_error in (False, True):
            reading, writing = os.pipe()
            os.set_blocking(reading, False)
            self._streams[reading] = _Stream(rank, is_error)
            self._streams[reading].redactor.hide(secrets)
            self.selector.register(reading, selectors.EVENT_READ, rank)
            ends.append(writing)
        return ends[0], ends[1]

    def pump(self, wait: float) -> bool:
        """Wait for output at most so long and pass it on. Returns whether something else than output woke us."""
        now = time.monotonic()
        due = self._fold.due(now)
        woken = False
        for key, _ in self.selector.select(wait if due is None else min(wait, due)):
            if key.fd in self._streams:
                self._read(key.fd)
            else:
                woken = True
        self._write_idle_rests()
        self.flush()
        return woken

    def drain(self, rank: int) -> None:
        """A rank is gone: take what it has left in its pipes. Its children may hold them open, so do not wait."""
        for descriptor, stream in list(self._streams.items()):
            if stream.rank == rank:
                self._read_rest(descriptor)
        if not any(stream.rank == rank for stream in self._streams.values()):
            self._fold.living.discard(rank)

    def flush(self, everything: bool = False) -> None:
        """Show what is ready to be shown."""
        lines = list(self._fold.ready(time.monotonic(), everything))
        if lines:
            self._screen.show(lines, is_alone=self._size == 1)

    def close(self) -> None:
        """Take and show all that is left."""
        for descriptor in list(self._streams):
            self._read_rest(descriptor)
            if descriptor in self._streams:
                self._end(descriptor)
        self.flush(everything=True)
        self.selector.close()

    def _read_rest(self, descriptor: int) -> None:
        """What is in a pipe now. A child that outlived the rank may go on writing: it must not keep us."""
        for _ in range(_MOST_LEFT // _READ):
            if not self._read(descriptor):
                return

    def _read(self, descriptor: int) -> bool:
        """One piece of a stream; false if there is none now."""
        try:
            data = os.read(descriptor, _READ)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._end(descriptor)
            return False
        self._take(self._streams[descriptor], data)
        return True

    def _end(self, descriptor: int) -> None:
        stream = self._streams.pop(descriptor)
        self.selector.unregister(descriptor)
        os.close(descriptor)
        if stream.rest:
            self._take(stream, b"\n")

    def _take(self, stream: _Stream, data: bytes) -> None:
        now = time.monotonic()
        whole = stream.rest + data
        # A carriage return at the very end may be the first half of a line's end.
        cut = max(whole.rfind(b"\n"), whole.rfind(b"\r", 0, len(whole) - 1)) + 1
        if not cut and len(whole) > _LONGEST_LINE:
            blank = max(whole.rfind(b" ", len(whole) - _LONGEST_WORD), whole.rfind(b"\t", len(whole) - _LONGEST_WORD))
            cut = blank + 1 or len(whole)
        if not cut:
            stream.rest, stream.since = whole, now
            return
        lines, stream.rest = whole[:cut], whole[cut:]
        stream.since = now
        cleaned = stream.redactor.clean(lines)
        self._listener.write_output(self._number, stream.rank, cleaned[stream.written :], stream.is_error)
        stream.written = 0
        self._pass_on(stream, cleaned, now)

    def _pass_on(self, stream: _Stream, lines: bytes, now: float) -> None:
        """Every line to the watch and the screen; of states of a progress bar only one now and then to the screen."""
        rank, is_error, heard, add = stream.rank, stream.is_error, self._listener.heard, self._fold.add
        shows = self._screen.shows
        own_mark = b"[rank%d]: " % rank
        parts = lines.split(b"\n")
        last = parts.pop()
        for line in parts:
            if b"\r" in line:
                line = self._last_state(stream, line.removesuffix(b"\r"))
            heard(rank, line)
            if shows:  # PyTorch marks its exceptions by rank too; without its mark, ranks that fail alike are folded.
                add(rank, line.removeprefix(own_mark), is_error, now)
        for state in last.split(b"\r"):
            if state.strip():
                heard(rank, state)
                self._repaint(stream, state, now)

    def _last_state(self, stream: _Stream, line: bytes) -> bytes:
        """What a terminal would show of a line that was painted over several times."""
        *painted, shown = line.split(b"\r")
        for state in painted:
            if state.strip():
                self._listener.heard(stream.rank, state)
        return shown if shown.strip() or not painted else painted[-1]

    def _repaint(self, stream: _Stream, state: bytes, now: float) -> None:
        self.last_repaint = state
        if self._screen.shows and now - stream.repainted >= _REPAINTED:
            stream.repainted = now
            self._fold.add(stream.rank, state, stream.is_error, now)

    def _write_idle_rests(self) -> None:
        """The beginning of a line that does not go on may be a rank's last words, but not the first half of a secret."""
        now = time.monotonic()
        for stream in self._streams.values():
            if len(stream.rest) <= stream.written or now - stream.since <= _IDLE:
                continue
            stream.since = now  # once a second is often enough to look
            if stream.redactor.is_settled(stream.rest):
                new = stream.rest[stream.written :]
                self._listener.write_output(self._number, stream.rank, new, stream.is_error)
                stream.written = len(stream.rest)
