"""Who is behind, for the status line: ranks that others have left behind at every look of some seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from phalanx.run.watch.look import RankLook

_LOOKS = 5  # for as many one after the other, two seconds or more
_REMEMBERED = 16

Counts = Mapping[str, int]  # how far a rank came, by process group


class Lag:
    """Ranks are looked at one after the other, while all go on: one is behind only if another had come farther before."""

    def __init__(self) -> None:
        self._past: dict[int, deque[tuple[float, Counts]]] = {}
        self._leads: dict[int, deque[int]] = {}

    def note(self, rank: int, look: RankLook, step: int | None) -> None:
        """One look at a rank: collectives entered, by the watch inside; else the steps that it tells of."""
        at, counts = look.time, {"": step} if step is not None else {}
        if look.beat is not None and look.beat.groups:
            at, counts = look.beat.time, {name: group.enqueued for name, group in look.beat.groups.items()}
        past = self._past.setdefault(rank, deque(maxlen=_REMEMBERED))
        if past and past[-1][0] >= at:
            return  # nothing new of it
        past.append((at, counts))
        others = [self._until(at, other) for other in self._past if other != rank]
        leads = [theirs[name] - mine for theirs in others for name, mine in counts.items() if name in theirs]
        self._leads.setdefault(rank, deque(maxlen=_LOOKS)).append(max(leads, default=0))

    def behind(self, rank: int) -> int:
        """By how many steps or collectives the rank has been behind all the time."""
        leads = self._leads.get(rank, ())
        return max(min(leads), 0) if len(leads) == _LOOKS else 0

    def counts_steps(self, rank: int) -> bool:
        """Whether that is in steps."""
        past = self._past.get(rank)
        return past is not None and "" in past[-1][1]

    def forget(self, rank: int) -> None:
        """The rank has ended."""
        self._past.pop(rank, None)
        self._leads.pop(rank, None)

    def _until(self, at: float, rank: int) -> Counts:
        """The last that was seen of a rank until then."""
        return next((counts for when, counts in reversed(self._past[rank]) if when <= at), {})
