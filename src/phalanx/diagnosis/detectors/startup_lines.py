"""What a script says of its devices before it trains: that it asked for more than it found.

asked for 4 devices but only 1 is visible
GPUs requested: 8; GPUs found: 2
using only 1 of 4 GPUs

Only lines before the first step are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.diagnosis.detectors.protocol import Job, found
from phalanx.model import Event
from phalanx.model.lazy import lazy

_THINGS = lazy(
    r"\b(?:gpus?|devices?|accelerators?|tpus?|replicas?|process(?:es)?|ranks|nodes|hosts|workers|world[_ ]size)\b"
)
_NOT_MEANT = lazy(
    r"loader|num_workers|batch|per[ _-]?device|memory|\bmib\b|\bgib\b|wait|join|ready|connect|retry|port\b"
)
_CLAUSES = lazy(r"[;,()\[\]|]| - |\bbut\b|\bwhile\b|\bthough\b|\bthen\b|\bwhereas\b|\band\b|(?=\binstead of\b)")
_ASKED = lazy(
    r"\b(?:request(?:ed|s)?|ask(?:ed|s|ing)?|expect(?:ed|s|ing)?|want(?:ed|s)?|need(?:ed|s)?|requires?d?|configured|intended|should|instead of|desired|specified)\b"
)
_FOUND = lazy(
    r"\b(?:found|only|available|visible|detected|sees?|seen|got|has|have|returned|using|uses?|actual(?:ly)?|running|training|present|there (?:is|are)|proceeding|continuing)\b"
)
_NUMBER = lazy(r"(?<![\w.:/-])(\d{1,4})(?![\w.:/%]|\s?(?:%|gb|mb|s\b))")
# Without "only" it may be meant so, and a process of several sees its part.
_PART = lazy(r"\bonly\W(?:\w+\W){0,2}?(\d{1,4}) (?:out )?of (?:the )?(\d{1,4})\b")


def detect(job: Job) -> Iterator[Event]:
    """At most one fact of each speaker."""
    for file in job.files:
        for rank, entry in file.ranks.items():
            for line, text in entry.opening:
                numbers = asked_and_found(text)
                if numbers is not None:
                    asked, there = numbers
                    yield found("startup.fewer-devices", file.name, line, rank, asked=asked, found=there)
                    break


def asked_and_found(text: str) -> tuple[int, int] | None:
    """How many devices a line says were asked for, and how many fewer there are; None where it does not say so."""
    low = text.lower()
    if _THINGS.search(low) is None:
        return None
    part = _PART.search(low)
    if part is not None and not _NOT_MEANT.search(low):
        few, asked = int(part[1]), int(part[2])
        return (asked, few) if 0 < few < asked else None
    asked_for: set[int] = set()
    there: set[int] = set()
    for clause in re.split(_CLAUSES.pattern, low):
        numbers = [int(number) for number in _NUMBER.findall(clause)]
        if len(numbers) != 1 or _NOT_MEANT.search(clause):
            continue
        if _ASKED.search(clause) and not _FOUND.search(clause):
            asked_for.add(numbers[0])
        elif _FOUND.search(clause) or _THINGS.search(clause):
            there.add(numbers[0])
    if len(asked_for) != 1 or len(there) != 1:
        return None
    asked, few = asked_for.pop(), there.pop()
    return (asked, few) if few < asked else None
