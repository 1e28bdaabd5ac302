"""What ranks state of themselves before they train, compared: one that has another world size, model or amount of data than all others.

rank0.log: RANK=0 WORLD_SIZE=3        rank1.log: RANK=1 WORLD_SIZE=2        rank2.log: RANK=2 WORLD_SIZE=3

Such a line proves nothing alone. Where ranks failed to meet, and nothing else tells who is to blame, it does.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from phalanx.diagnose.history import History

_FEWEST_RANKS = 3  # of which two agree
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_CLOCK = re.compile(r"\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d(?:[.,]\d+)?|\b[IWEFC]\d{4} ")
# What a number is about, told by the words around it, and what it means that ranks differ in it.
_ABOUT: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"world[_ ]?size|\bnranks|\bn?procs?\b|process(?:es)?\b", re.I), "world-size-differs"),
    (re.compile(r"master[_ ]?port|\bmaster\b", re.I), "master-port-differs"),
    (re.compile(r"\bparam\w*|vocab\w*|\bwords\b|\blayers?\b|\bhidden\w*|\bclasses\b|\bheads?\b|embedding", re.I), "model-differs-between-ranks"),
    (re.compile(r"(?:torch|numpy|cuda|nccl|python|version)\W{0,3}$", re.I), "versions-differ-between-ranks"),
    (re.compile(r"\bbatches\b|\bsteps\b|\biterations\b|\bsamples?\b|\bexamples\b|\brecords\b|\brows\b|\bimages\b|\bfiles\b|\bsequences\b", re.I), "uneven-steps"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """The rank that differs from all others, what it states, and what that means."""

    rank: int
    cause: str
    own: str
    common: str


def stated_otherwise(history: History) -> Statement | None:
    """The one rank that states another number than all others, which agree; none where several do."""
    lines: dict[int, dict[str, list[tuple[str, str]]]] = {}
    for file in history.seen.files:
        for rank, entry in file.ranks.items():
            if rank is not None and not file.is_report:
                lines.setdefault(rank, {}).update(_numbers(text) for _, text in entry.opening)
    if len(lines) < _FEWEST_RANKS or lines.keys() < history.world.all_ranks:
        return None
    found: list[Statement] = []
    for template in set.intersection(*(set(own) for own in lines.values())):
        rows = {rank: own[template] for rank, own in lines.items()}
        found.extend(one for place in range(min(map(len, rows.values()))) if (one := _odd(rows, place)) is not None)
    return found[0] if len({one.rank for one in found}) == 1 else None


def _numbers(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A line without its numbers, and each number with what stands around it."""
    plain = _CLOCK.sub("", text)
    around = [
        (match[0], f"{plain[max(0, match.start() - 24) : match.start()]}|{plain[match.end() : match.end() + 14]}")
        for match in _NUMBER.finditer(plain)
    ]
    return _NUMBER.sub("#", plain).strip(), around


def _odd(rows: dict[int, list[tuple[str, str]]], place: int) -> Statement | None:
    values = {rank: row[place][0] for rank, row in rows.items()}
    counts = Counter(values.values()).most_common()
    if len(counts) != 2 or counts[1][1] != 1 or counts[0][1] < 2:
        return None
    rank = next(rank for rank, value in values.items() if value == counts[1][0])
    before, _, after = rows[rank][place][1].partition("|")
    for pattern, cause in _ABOUT:
        if pattern.search(_NUMBER.split(before)[-1]) or pattern.match(after.lstrip(" -_")):
            return Statement(rank, cause, counts[1][0], counts[0][0])
    return None
