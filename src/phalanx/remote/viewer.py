"""Shows the output of all nodes' ranks as `phalanx run` does: by line, folded, with the rank before it."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol

from phalanx.model.ranks import ranges
from phalanx.run.fold import Fold, Said

_LONGEST_LINE = 1 << 20


class Stage(Protocol):
    """Where lines go: a terminal, or a notebook's cell."""

    def show(self, lines: list[Said], is_alone: bool) -> None:
        """Lines of ranks, in order."""

    def say(self, text: str) -> None:
        """A line of our own."""

    def say_block(self, text: str) -> None:
        """Several lines of our own."""


class Viewer:
    """Called by the threads of all nodes; shows from the driver's alone. Where nobody looks, lines are not folded."""

    def __init__(self, stage: Stage, size: int, shows: bool = True) -> None:
        self.stage = stage
        self._shows = shows
        self._lock = threading.Lock()
        self.begin(size)

    def begin(self, size: int) -> None:
        """A new attempt: all ranks may speak."""
        with self._lock:
            self._size = size
            self._fold = Fold(range(size))
            self._rests: dict[tuple[int, bool], bytes] = {}

    def hear(self, rank: int, data: bytes, is_error: bool) -> None:
        """A piece of output."""
        if not self._shows:
            return
        now = time.monotonic()
        mark = b"[rank%d]: " % rank
        with self._lock:
            lines = (self._rests.get((rank, is_error), b"") + data).split(b"\n")
            rest = lines.pop()
            self._rests[rank, is_error] = rest[-_LONGEST_LINE:]
            for line in lines:
                shown = line.rstrip(b"\r").rpartition(b"\r")[2]
                self._fold.add(rank, shown.removeprefix(mark), is_error, now)

    def ended(self, rank: int) -> None:
        """A rank says no more."""
        with self._lock:
            for is_error in (False, True):
                if rest := self._rests.pop((rank, is_error), b""):
                    self._fold.add(rank, rest, is_error, time.monotonic())
            self._fold.living.discard(rank)

    def flush(self, everything: bool = False) -> None:
        """Show what is ready."""
        with self._lock:
            lines = list(self._fold.ready(time.monotonic(), everything))
        if lines:
            self.stage.show(lines, self._size == 1)


class Cell:
    """Python's own `sys.stdout` and `sys.stderr`, whatever they are by now: a notebook's cell, a captured stream."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet

    def show(self, lines: list[Said], is_alone: bool) -> None:
        """Lines of ranks."""
        if self._quiet:
            return
        for is_error, stream in ((False, sys.stdout), (True, sys.stderr)):
            texts = [_line(said, is_alone) for said in lines if said.is_error is is_error]
            if texts:
                _write(stream.write, "".join(texts))
                _write(lambda _, stream=stream: stream.flush(), "")  # type: ignore[misc]

    def say(self, text: str) -> None:
        """To standard error."""
        if not self._quiet:
            _write(sys.stderr.write, f"phalanx: {text}\n")

    def say_block(self, text: str) -> None:
        """To standard error."""
        if not self._quiet:
            _write(sys.stderr.write, text.rstrip("\n") + "\n")


def _line(said: Said, is_alone: bool) -> str:
    text = said.text.decode("utf-8", "replace")
    return f"{text}\n" if is_alone else f"[{ranges(said.ranks)}] {text}\n"


def _write(act: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # whoever read us is gone; the output is in the bundle
        act(text)
