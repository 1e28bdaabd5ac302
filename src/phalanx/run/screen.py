"""What the user sees: lines with their rank before them, our own words, and in a terminal a status line below.

Rank's standard output goes to ours, its standard error to ours. All writing goes through here, so that the status line is
taken away before anything else is written and put back after it.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TextIO

from phalanx.model.printable import printable, safe, safe_bytes
from phalanx.model.ranks import ranges
from phalanx.run.fold import Said

_COLOURS = (36, 33, 35, 32, 34, 31, 96, 93, 95, 92, 94, 91)
_MOST_WAITING = 4 << 20  # bytes kept for a reader that is slow
_PIECE = 4096  # a pipe that is writable takes this much without blocking


def wants_colour(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """A terminal that is not dumb, and nobody who says no."""
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return bool(environment.get("FORCE_COLOR")) or stream.isatty()


class Screen:
    """The two streams of the command. With `only_errors` all goes to standard error: the other is kept for a report."""

    shows = True  # whether lines of ranks are shown at all

    def __init__(self, only_errors: bool = False) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        err = sys.stderr.fileno()
        self._fds = {False: err if only_errors else sys.stdout.fileno(), True: err}
        self._colour = {
            False: wants_colour(sys.stderr if only_errors else sys.stdout),
            True: wants_colour(sys.stderr),
        }
        self._is_terminal = {
            False: (sys.stderr if only_errors else sys.stdout).isatty(),
            True: sys.stderr.isatty(),
        }
        self.has_status = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._status = ""
        self._is_shown = False
        self._gone: set[int] = set()
        self._waiting: dict[int, bytearray] = {}
        self._is_patient = False
        self._lock = threading.RLock()

    def show(self, lines: list[Said], is_alone: bool) -> None:
        """Lines of ranks, in order. A job of one rank needs no prefix."""
        parts: list[bytes] = []
        current: bool | None = None
        for said in lines:
            if said.is_error is not current and parts:
                self._write(self._fds[bool(current)], b"".join(parts))
                parts = []
            current = said.is_error
            if self._is_terminal[said.is_error]:
                said = replace(said, text=safe_bytes(said.text))
            parts.append(said.text + b"\n" if is_alone else self._prefixed(said))
        if parts:
            self._write(self._fds[bool(current)], b"".join(parts))

    def _prefixed(self, said: Said) -> bytes:
        who = ranges(said.ranks) if len(said.ranks) > 1 else str(said.ranks[0])
        if not self._colour[said.is_error]:
            return b"[%b] %b\n" % (who.encode(), said.text)
        colour = _COLOURS[said.ranks[0] % len(_COLOURS)] if len(said.ranks) == 1 else 2
        end = b"\x1b[0m\n" if b"\x1b[" in said.text else b"\n"
        return b"\x1b[%dm[%b]\x1b[0m %b%b" % (colour, who.encode(), said.text, end)

    def say(self, text: str) -> None:
        """A line of our own, on standard error."""
        name = "\x1b[1mphalanx:\x1b[0m" if self._colour[True] else "phalanx:"
        self._write(self._fds[True], f"{name} {printable(text)}\n".encode("utf-8", "replace"))

    def say_block(self, text: str) -> None:
        """Several lines of our own, as they are."""
        self._write(self._fds[True], (safe(text).rstrip("\n") + "\n").encode("utf-8", "replace"))

    def set_status(self, text: str) -> None:
        """Show this as the last line, in a terminal."""
        text = printable(text)
        if not self.has_status or text == self._status:
            return
        self._clear()
        self._status = text
        self._draw()

    def _draw(self) -> None:
        if self._status and not self._is_shown:
            width = shutil.get_terminal_size().columns
            shown = self._status if len(self._status) < width else self._status[: width - 2] + "…"
            dim, end = ("\x1b[2m", "\x1b[0m") if self._colour[True] else ("", "")
            self._is_shown = True
            self._send(self._fds[True], f"{dim}{shown}{end}".encode("utf-8", "replace"))

    def _clear(self) -> None:
        if self._is_shown:
            self._is_shown = False
            self._send(self._fds[True], b"\r\x1b[2K")

    def _write(self, descriptor: int, data: bytes) -> None:
        self._clear()
        self._send(descriptor, data)
        self._draw()

    def _send(self, descriptor: int, data: bytes) -> None:
        """Write it, behind what still waits. Whoever reads us may have gone away: the job goes on, its output is in the bundle."""
        if descriptor in self._gone:
            return
        with self._lock:  # agents' lines are read by threads of their own
            waiting = self._waiting.setdefault(descriptor, bytearray())
            waiting += data
            if len(waiting) > _MOST_WAITING and not self._is_patient:
                cut = waiting.find(b"\n", len(waiting) - _MOST_WAITING // 2) + 1
                waiting[:cut] = b"phalanx: the reader is too slow: lines are left out here; the bundle has them all\n"
        self.flush()

    def flush(self) -> None:
        """Write what can be written without waiting: a reader that has stopped (`| less`) must not stop the job, its time limit or Ctrl-C."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        for descriptor, waiting in self._waiting.items():
            try:
                while waiting and descriptor not in self._gone:
                    if not select.select([], [descriptor], [], 1.0 if self._is_patient else 0.0)[1]:
                        if self._is_patient:
                            continue
                        break
                    with contextlib.suppress(BlockingIOError):
                        del waiting[: os.write(descriptor, bytes(waiting[:_PIECE]))]
            except (OSError, ValueError):
                self._gone.add(descriptor)
                waiting.clear()

    def close(self) -> None:
        """Leave the terminal clean. The ranks have ended: from now on a slow reader is waited for."""
        self._is_patient = True
        self._clear()
        self._status = ""
        self.flush()


def is_terminal(descriptor: int) -> bool:
    """Whether a person, or nobody, is at the other end."""
    try:
        return os.isatty(descriptor) or os.fstat(descriptor).st_mode == 0
    except OSError:
        return True  # closed: then there is nothing to read from
