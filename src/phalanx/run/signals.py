"""Signals to the supervisor, as something that a loop over descriptors can wait for."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType, TracebackType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """While entered, Ctrl-C, SIGTERM and SIGHUP are noted instead of ending us, and a child's death wakes the loop."""

    def __init__(self) -> None:
        self.wakes, self._writing = os.pipe()
        for end in (self.wakes, self._writing):
            os.set_blocking(end, False)
        self._noted: list[int] = []
        self._before: dict[int, object] = {}
        self._wakeup = -1

    def __enter__(self) -> Signals:
        for number in _ENDING:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:  # under nohup a hang-up is to be ignored
                self._before[number] = before
                signal.signal(number, self._note)
        self._before[signal.SIGCHLD] = signal.getsignal(signal.SIGCHLD)
        signal.signal(signal.SIGCHLD, _nothing)
        self._wakeup = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]
        for end in (self.wakes, self._writing):
            os.close(end)

    def take(self) -> list[int]:
        """The signals since the last call."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wakes, 4096):
                pass
        taken, self._noted = self._noted, []
        return taken

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted.append(number)


def _nothing(number: int, frame: FrameType | None) -> None:
    """A handler must be there, or the death of a child would wake nobody."""
