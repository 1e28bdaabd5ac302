"""Folds identical lines of several ranks into one, without changing the order in which any rank said them.

A line waits a moment for the others to say the same; where all have said it, it goes at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_MOST_WAITING = 20_000


@dataclass(slots=True)
class Said:
    """A line, the stream it came by, and who has said it so far."""

    text: bytes
    is_error: bool
    at: float
    number: int
    ranks: list[int] = field(default_factory=list)


def _number_of(said: Said) -> int:
    return said.number


class Fold:
    """Lines in, folded lines out. `wait` is how long, in seconds, a line waits for the other ranks."""

    def __init__(self, ranks: Iterable[int], wait: float = 0.1) -> None:
        self.living = set(ranks)
        self._wait = wait if len(self.living) > 1 else 0.0
        self._waiting: deque[Said] = deque()
        self._by_text: dict[tuple[bool, bytes], deque[Said]] = {}
        self._last: dict[int, int] = {}
        self._count = 0

    def add(self, rank: int, text: bytes, is_error: bool, now: float) -> None:
        """A rank has said a line."""
        same = self._by_text.get((is_error, text))
        if same is not None:
            # Joining a line before the rank's last one would turn its words around.
            place = bisect_right(same, self._last.get(rank, -1), key=_number_of)
            if place < len(same):
                same[place].ranks.append(rank)
                self._last[rank] = same[place].number
                return
        said = Said(text, is_error, now, self._count, [rank])
        self._last[rank] = self._count
        self._count += 1
        self._waiting.append(said)
        self._by_text.setdefault((is_error, text), deque()).append(said)

    def ready(self, now: float, everything: bool = False) -> Iterator[Said]:
        """The lines to show now, in order."""
        while self._waiting:
            first = self._waiting[0]
            is_due = now - first.at >= self._wait or len(self._waiting) > _MOST_WAITING
            if not (everything or is_due or len(first.ranks) >= len(self.living)):
                return
            self._waiting.popleft()
            same = self._by_text[first.is_error, first.text]
            same.popleft()
            if not same:
                del self._by_text[first.is_error, first.text]
            yield first

    def due(self, now: float) -> float | None:
        """Seconds until the next line is to be shown; None if none waits."""
        return max(0.0, self._waiting[0].at + self._wait - now) if self._waiting else None
