"""Notices a rank that is steadily slower than the rest: by how much, and what it does while the others wait for it.

The watch inside looks at each rank's main thread a few times a second. In a job that goes in step the fast ranks are
found waiting in collectives, the slow one hardly ever; what it is found at instead tells why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from phalanx.model.facts import make_fact, sentence_of
from phalanx.run.observer import Observation
from phalanx.run.watch.look import RankLook

_WINDOW_S = 15.0
_IN_A_ROW = 3  # windows that must agree: steadily, not by chance
_FEWEST_CALLS = 10
_FEWEST_LOOKS = 20
# A job that ends before it was long enough watched is judged whole, if the same rank was slow in most of its short pieces.
_PIECE_S = 3.0
_FEWEST_PIECES = 3
_MOST_PIECES = 0.75
_LOOKS_A_PIECE, _CALLS_A_PIECE = 6, 4
_PROVEN = ("data", "compute", "memory")  # in so short a time who idles, or lacks a processor, may do so by chance
_GAP = 0.2  # by how much more of their time the others wait
_OFTEN = 0.3
_FAULTS_PER_S = 50.0


@dataclass(frozen=True, slots=True)
class Shares:
    """What a rank did with its time within a window, as shares of it."""

    waits: float  # in collectives
    data: float  # for its data loader
    runs: float  # its main thread on a processor
    queues: float  # its main thread ready, and no processor free
    faults: float  # pages a second that had to be read in
    written: float  # bytes a second, read too


class StragglerWatch:
    """Feed it looks; it speaks when the same rank stood out several times in a row."""

    def __init__(self, window: float = _WINDOW_S) -> None:
        self._window = window
        self._before: Mapping[int, RankLook] = {}
        self._since: float | None = None
        self._row: list[int] = []
        self._told: int | None = None
        self._pieces: list[int | None] = []  # the slowest of each short piece, from the first that could be judged
        self._first: Mapping[int, RankLook] = {}
        self._last: Mapping[int, RankLook] = {}

    @property
    def suspect(self) -> int | None:
        """The rank that was slowest when the ranks were last compared."""
        return self._row[-1] if self._row else self._pieces[-1] if self._pieces else None

    def update(self, now: float, looks: Mapping[int, RankLook]) -> list[Observation]:
        """Compare the ranks once a window."""
        self._note_piece(looks)
        if self._since is None or looks.keys() != self._before.keys():
            self._since, self._before, self._row = now, dict(looks), []
            return []
        if now - self._since < self._window:
            return []
        shares = shares_of(self._before, looks)
        self._since, self._before = now, dict(looks)
        slowest = slowest_of(shares) if shares is not None else None
        if slowest is None:
            self._row, self._told = [], None
            return []
        self._row = [*self._row, slowest] if self._row[-1:] in ([], [slowest]) else [slowest]
        if len(self._row) < _IN_A_ROW or self._told == slowest or shares is None:
            return []
        self._told = slowest
        return [describe(slowest, shares)]

    def at_the_end(self) -> list[Observation]:
        """The ranks begin to end, well: what is to be said of the whole job, if nothing was said before."""
        pieces = self._pieces
        if self._told is not None or len(pieces) < _FEWEST_PIECES:
            return []
        shares = shares_of(self._first, self._last)
        slowest = slowest_of(shares) if shares is not None else None
        if shares is None or slowest is None or pieces.count(slowest) < _MOST_PIECES * len(pieces):
            return []
        told = describe(slowest, shares)
        if told.data["why"] not in _PROVEN:
            return []
        self._told = slowest
        return [told]

    def _note_piece(self, looks: Mapping[int, RankLook]) -> None:
        """Pieces in which nothing can be compared, before the ranks are connected or after, are left out."""
        last, newest = self._last, max((look.time for look in looks.values()), default=0.0)
        if looks.keys() != last.keys():
            self._last = dict(looks)
            return
        if newest - max((look.time for look in last.values()), default=newest) < _PIECE_S:
            return
        shares = shares_of(last, looks, _LOOKS_A_PIECE, _CALLS_A_PIECE)
        if shares is not None:
            self._first = self._first or last
            self._pieces.append(slowest_of(shares))
        if shares is not None or not self._pieces:
            self._last = dict(looks)


def shares_of(
    before: Mapping[int, RankLook],
    after: Mapping[int, RankLook],
    fewest_looks: int = _FEWEST_LOOKS,
    fewest_calls: int = _FEWEST_CALLS,
) -> dict[int, Shares] | None:
    """What each rank did between two looks; None unless all are watched from inside and went forward."""
    found = {}
    for rank, new in after.items():
        old = before.get(rank, new)
        if new.beat is None or old.beat is None or not new.beat.connected:
            return None
        looks, span = new.beat.looks - old.beat.looks, new.time - old.time
        if looks < fewest_looks or new.beat.progress - old.beat.progress < fewest_calls or span <= 0:
            return None
        moved = new.signs.io - old.signs.io
        found[rank] = Shares(
            (new.beat.in_collective - old.beat.in_collective) / looks,
            (new.beat.in_data - old.beat.in_data) / looks,
            (new.demand - new.delay - old.demand + old.delay) / span,
            (new.delay - old.delay) / span,
            (new.process.major_faults - old.process.major_faults) / span,
            moved / span,
        )
    return found if len(found) > 1 else None


def slowest_of(shares: Mapping[int, Shares]) -> int | None:
    """The rank that waits far less than all others; None if none stands out."""
    order = sorted(shares, key=lambda rank: shares[rank].waits)
    first, second = shares[order[0]], shares[order[1]]
    return order[0] if second.waits - first.waits >= _GAP and second.waits >= 2 * first.waits else None


def describe(rank: int, shares: Mapping[int, Shares]) -> Observation:
    """Who, by how much, and why."""
    own = shares[rank]
    others = [share for other, share in shares.items() if other != rank]
    waits = median(share.waits for share in others)
    factor = (1 - own.waits) / max(1 - waits, 0.05)
    why, text = _why(own, others)
    fields = {"factor": f"{factor:.1f}", "share": f"{waits:.0%}", "why": text, "what": why}
    fact = make_fact("rank.slower", fields, ranks=(rank,), source="watch")
    data = {
        "why": why,
        "factor": round(factor, 2),
        "waits": round(own.waits, 3),
        "others_wait": round(waits, 3),
        "data": round(own.data, 3),
        "runs": round(own.runs, 3),
        "queues": round(own.queues, 3),
    }
    return Observation("straggler", (rank,), sentence_of(fact), data, (fact,))


def _why(own: Shares, others: list[Shares]) -> tuple[str, str]:
    if own.faults >= _FAULTS_PER_S and own.faults > 4 * median(share.faults for share in others):
        return "memory", f"it waits for memory ({own.faults:.0f} pages a second are read back in)"
    if own.data >= _OFTEN:
        return "data", f"it is found waiting for its data loader in {own.data:.0%} of the looks"
    if own.queues >= _OFTEN:
        return "processor", f"it waits for a free processor {own.queues:.0%} of the time"
    if own.runs >= 0.5:
        return "compute", f"it computes {own.runs:.0%} of the time"
    return "idle", f"it computes only {own.runs:.0%} of the time and sleeps or waits for something else"
