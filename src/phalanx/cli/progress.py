"""A word on what is being done, on the terminal, once it takes longer than people like to wait in silence."""

from __future__ import annotations

import sys
import time

_SILENCE_S = 2.0
_PAUSE_S = 0.5


class Progress:
    """One line that is written over; nothing where nobody looks."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._shown = 0
        self._is_terminal = sys.stderr.isatty()

    def say(self, text: str) -> None:
        """What is done now. Cheap enough to be called often."""
        now = time.monotonic()
        if not self._is_terminal or now - self._began < _SILENCE_S or now - self._last < _PAUSE_S:
            return
        self._last = now
        line = f"phalanx: {text} ({now - self._began:.0f} s)"
        sys.stderr.write("\r" + line.ljust(self._shown))
        sys.stderr.flush()
        self._shown = len(line)

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.writelines(("\r" + " " * self._shown, "\r"))
            sys.stderr.flush()
            self._shown = 0
