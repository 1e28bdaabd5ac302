"""Jobs of which nothing is left but steps, and then silence: whose last output differs from that of all other ranks.

rank0.log: step 30        rank1.log: step 30        rank2.log: step 25
rank0.log: step 30        rank1.log: step 30        rank2.log: step 30 / upload failed, trying again / upload failed, trying again / …

A job that ended well says so, or all its ranks end at the same step. Nothing is claimed where a program tells of any failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from phalanx.diagnosis.detectors.protocol import Job, found
from phalanx.model import Event, EventKind
from phalanx.sources import FileSurvey
from phalanx.sources.progress import Position
from phalanx.sources.shapes import shape_of
from phalanx.sources.survey import RankSurvey

_TOLD = frozenset(
    (EventKind.EXCEPTION, EventKind.EXIT, EventKind.STALL, EventKind.TIMEOUT, EventKind.STACK, EventKind.TRACE)
)
_FEWEST_RANKS = 3  # of which two agree
_FEWEST_REPORTS = 3  # of every rank: then it is known how often one comes
_AGAIN = 5  # times in a row, with nothing in between
_TRIES = re.compile(r"\b(?:re-?try(?:ing)?|try(?:ing)? again|re-?attempt(?:ing)?|re-?connecting|attempt \d+)\b", re.I)
_WAITS = re.compile(r"\bwait(?:ing|s)?\b|\bpolling\b|\bnot (?:yet )?(?:ready|there|available|found)\b", re.I)
_SHOWN = 160
_Shown = tuple[str, int, dict[str, Any]]  # the fact, the rank, its fields


class _Last(NamedTuple):
    """How one rank's output ends."""

    file: str
    entry: RankSurvey
    at: Position

    @property
    def said_after(self) -> str:
        """The last line, if it is of something else than a step."""
        return self.entry.last_text if self.entry.last_line > (self.entry.last_progress or 0) else ""

    @property
    def before(self) -> Position:
        """What the report before its last one told."""
        text = self.entry.recent_reports[-2]
        return shape_of(text).position_in(text)


def detect(job: Job) -> Iterator[Event]:
    """At most one fact, about one rank that stands alone."""
    if any(event.kind in _TOLD for event in job.events):
        return
    ranks = _ends_of(job.files)
    sizes = {size for file in job.files for size in file.world_sizes}
    if len(ranks) < 2 or any(size > len(ranks) for size in sizes) or any(one.entry.finished for one in ranks.values()):
        return  # others' words are not here, or some rank was through
    for fact, rank, fields in (*_tries_again(ranks), *_behind(ranks)):
        yield found(fact, ranks[rank].file, ranks[rank].entry.last_line, rank, **fields)
        return


def _ends_of(files: Sequence[FileSurvey]) -> dict[int, _Last]:
    """By rank, if every rank tells of its steps in one place."""
    found: dict[int, _Last] = {}
    for file in files:
        for rank, entry in file.ranks.items():
            if rank is None and entry.position is None:
                continue  # words of a launcher
            if rank is None or rank in found or entry.position is None or len(entry.recent_progress) < _FEWEST_REPORTS:
                return {}
            found[rank] = _Last(file.name, entry, entry.position)
    return found


def _tries_again(ranks: dict[int, _Last]) -> Iterator[_Shown]:
    """One rank says that it tries again, or waits for something, over and over, and no other rank says anything."""
    loud = [rank for rank, one in ranks.items() if one.said_after]
    if len(loud) != 1 or (own := ranks[loud[0]]).entry.repeats < _AGAIN:
        return
    said = own.said_after
    if _TRIES.search(said) or _WAITS.search(said):
        yield "output.repeats", loud[0], {"times": own.entry.repeats, "said": said[:_SHOWN]}


def _behind(ranks: dict[int, _Last]) -> Iterator[_Shown]:
    """The last report of one rank is an earlier one than that of all others, which agree and say nothing more."""
    common, most = Counter(one.at for one in ranks.values()).most_common(1)[0]
    if len(ranks) < _FEWEST_RANKS:
        return
    if most != len(ranks) - 1:
        return
    rank, own = next((rank, one) for rank, one in ranks.items() if one.at != common)
    others = [one for one in ranks.values() if one is not own]
    # Who trains in step with others can be one report behind; who is further behind does not make them wait.
    if all(one.before == own.at and not one.said_after for one in others):
        yield "output.rank-behind", rank, {"own": _named(own.at), "common": _named(common)}


def _named(at: Position) -> str:
    epoch, step = at
    return " ".join(f"{name} {number}" for name, number in (("epoch", epoch), ("step", step)) if number >= 0)
