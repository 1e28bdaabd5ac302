"""Notes at which lines of the user's code a rank is found that seems slower than the rest: where it spends its time."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from dataclasses import replace

from phalanx.model.facts import sentence_of
from phalanx.run.observer import Observation
from phalanx.run.watch.rank_position import Doing, doing_of
from phalanx.run.watch.stacks import Thread, take_stacks

_EVERY_S = 1.0  # between two looks: each costs a fraction of a second of a processor
_FEWEST = 3
_SHARE = 0.5  # of the looks outside of collectives that must find the same line


class SlowPlaces:
    """Asked about once a tick; looks beside, so that nobody waits for it."""

    def __init__(self) -> None:
        self._found: dict[int, Counter[str]] = defaultdict(Counter)
        self._thread: threading.Thread | None = None
        self._next = 0.0

    def note(self, now: float, rank: int, pid: int) -> None:
        """Look at a rank that may be slow, unless a look is under way."""
        if now < self._next or (self._thread is not None and self._thread.is_alive()):
            return
        self._next = now + _EVERY_S
        self._thread = threading.Thread(target=self._look, args=(rank, pid), name="phalanx-slow", daemon=True)
        self._thread.start()

    def add_to(self, seen: Observation) -> Observation:
        """The observation of a slow rank with the line where it was mostly found."""
        place = self.place_of(seen.ranks[0]) if seen.ranks else ""
        if not place:
            return seen
        facts = tuple(replace(fact, fields={**fact.fields, "place": place}) for fact in seen.facts)
        return replace(seen, facts=facts, text=sentence_of(facts[0]), data={**seen.data, "place": place})

    def place_of(self, rank: int) -> str:
        """`load() at train.py:31`; empty where no line stands out."""
        counts = self._found[rank]
        place, times = counts.most_common(1)[0] if counts else ("", 0)
        return place if times >= max(_FEWEST, _SHARE * counts.total()) else ""

    def _look(self, rank: int, pid: int) -> None:
        main = take_stacks([pid], pause=False)[pid].main
        if main is not None and (place := busy_at(main)):
            self._found[rank][place] += 1


def busy_at(main: Thread) -> str:
    """The innermost line of the user's code that a thread is at; empty where it waits for other ranks."""
    if doing_of(main.frames)[0] in (Doing.COLLECTIVE, Doing.CONNECT):
        return ""
    frame = next((frame for frame in reversed(main.frames) if frame.is_user_code), None)
    return f"{frame.function}() at {frame.place}" if frame is not None else ""
