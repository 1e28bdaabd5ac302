"""What ranks state of themselves before they train, compared: one that has another world size, model or amount of data than all others.

rank0.log: RANK=0 WORLD_SIZE=3        rank1.log: RANK=1 WORLD_SIZE=2        rank2.log: RANK=2 WORLD_SIZE=3

Such a line proves nothing alone. Where ranks failed to meet, and nothing else tells who is to blame, it does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from phalanx.blame.quorum import odd_ones
from phalanx.diagnosis.history import History
from phalanx.sources.shapes import FOLDED

_FEWEST_RANKS = 3  # of which two agree
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_CLOCK = re.compile(r"\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d(?:[.,]\d+)?|\b[IWEFC]\d{4} ")
# What a number is about, told by the words around it, and what it means that ranks differ in it.
_ABOUT = re.compile(
    r"(?P<world>world[_ ]?size|\bnranks|\bn?procs?\b|process(?:es)?\b)|(?P<port>master[_ ]?port|\bmaster\b)"
    r"|(?P<model>\bparam\w*|vocab\w*|\bwords\b|\blayers?\b|\bhidden\w*|\bclasses\b|\bheads?\b|embedding)"
    r"|(?P<version>(?:torch|numpy|cuda|nccl|python|version)\W{0,3}$)"
    r"|(?P<data>\bbatches\b|\bsteps\b|\biterations\b|\bsamples?\b|\bexamples\b|\brecords\b|\brows\b|\bimages\b|\bfiles\b|\bsequences\b)",
    re.I,
)
_CAUSES = {
    "world": "world-size-differs",
    "port": "master-port-differs",
    "model": "model-differs-between-ranks",
    "version": "versions-differ-between-ranks",
    "data": "uneven-steps",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """The rank that differs from all others, what it states, and what that means."""

    rank: int
    cause: str
    what: str  # the word beside the number
    own: str
    common: str


@lru_cache(maxsize=1)  # several claims of one diagnosis ask
def stated_otherwise(history: History) -> Statement | None:
    """The one rank that states another number than all others, which agree; none where several do."""
    files = history.seen.files
    spoken = [(rank, entry.opening) for file in files for rank, entry in file.ranks.items() if rank is not None]
    ranks = {rank for rank, _ in spoken}
    if len(ranks) < _FEWEST_RANKS or ranks < history.world.all_ranks:
        return None
    lines: dict[int, dict[str, _Numbers]] = {rank: {} for rank in ranks}
    for rank, opening in spoken:
        lines[rank].update(_numbers(text) for _, text in opening)
    found: list[Statement] = []
    for template in [one for one in lines[min(ranks)] if all(one in own for own in lines.values())]:
        rows = {rank: own[template] for rank, own in lines.items()}
        fewest = min(len(row.printed) for row in rows.values())
        found.extend(one for place in range(fewest) if (one := _odd(rows, place)) is not None)
    return found[0] if len({one.rank for one in found}) == 1 else None


class _Numbers(NamedTuple):
    """The numbers of a line, and what stands around each."""

    printed: list[str]
    around: tuple[str, ...]


class _Form(NamedTuple):
    """A line without its numbers; where it bears a time, where its numbers stand without that, and what around them."""

    template: str
    times: tuple[tuple[int, int], ...]
    numbers: tuple[tuple[int, int], ...]
    around: tuple[str, ...]


def _numbers(text: str) -> tuple[str, _Numbers]:
    """A line's template and its numbers. Ranks say the same with other digits, so a form is found once for all of them."""
    form = _remembered(text.encode().translate(FOLDED)) if text.isascii() else _form_of(text)
    for start, stop in reversed(form.times):
        text = text[:start] + text[stop:]
    return form.template, _Numbers([text[start:stop] for start, stop in form.numbers], form.around)


@lru_cache(maxsize=2048)
def _remembered(folded: bytes) -> _Form:
    return _form_of(folded.decode())


def _form_of(text: str) -> _Form:
    plain = _CLOCK.sub("", text)
    spans = tuple(match.span() for match in _NUMBER.finditer(plain))
    around = tuple(f"{plain[max(0, start - 24) : start]}|{plain[stop : stop + 14]}" for start, stop in spans)
    times = tuple(match.span() for match in _CLOCK.finditer(text))
    return _Form(_NUMBER.sub("#", plain).strip(), times, spans, around)


def _odd(rows: dict[int, _Numbers], place: int) -> Statement | None:
    values = {rank: row.printed[place] for rank, row in rows.items()}
    odd = odd_ones(values, rows)
    if len(odd) != 1 or len(set(values.values())) != 2:
        return None
    (rank,) = odd
    common = next(value for other, value in values.items() if other != rank)
    before, _, after = rows[rank].around[place].partition("|")
    found = _ABOUT.search(_NUMBER.split(before)[-1]) or _ABOUT.match(after.lstrip(" -_"))
    if found is None:
        return None
    return Statement(rank, _CAUSES[str(found.lastgroup)], found[0].strip(" :=\t"), values[rank], common)
