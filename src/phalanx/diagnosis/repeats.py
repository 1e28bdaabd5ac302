"""Exceptions that say the same from the same place again and again: one that nobody caught would have been the last."""

from __future__ import annotations

from collections.abc import Iterable

from phalanx.model import Event


class Repeats:
    """Where each exception was first said, and the last new one of a file.

    A repeated one, of a job in which nobody died, was caught each time, at the end too.
    """

    def __init__(self, exceptions: Iterable[Event]) -> None:
        self._first: dict[tuple[object, ...], int] = {}
        self._last: dict[str, int] = {}
        self._known = known = list(exceptions)
        for event in known:
            if event.user_frame is not None:
                said = _saying(event)
                self._first[said] = min(event.line, self._first.get(said, event.line))
        for event in known:
            self._last[event.file] = max(self._last.get(event.file, 0), self.first_of(event))

    def first_of(self, event: Event) -> int:
        """The line of the first exception that says the same from the same place."""
        return self._first.get(_saying(event), event.line) if event.user_frame is not None else event.line

    def twins_of(self, event: Event) -> list[Event]:
        """The same from the same place in the same file, of other ranks."""
        said = (event.text, event.user_frame, event.file)
        return [
            other
            for other in self._known
            if event.user_frame is not None
            and (other.text, other.user_frame, other.file) == said
            and other.rank != event.rank
        ]

    def last_in(self, file: str) -> int:
        """The last line at which something was raised that had not been caught before; 0 in a file without."""
        return self._last.get(file, 0)


def _saying(event: Event) -> tuple[object, ...]:
    """What an exception says, from where."""
    return event.kind, event.file, event.rank, event.text, event.user_frame
