"""What a check finds, and how that becomes a finding of the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from phalanx.knowledge.fixes import FIX_PATTERNS
from phalanx.model import Confidence, Finding, Fix, Place, Role, Safety, Stage
from phalanx.model import Evidence as Quote
from phalanx.verification.evidence import Evidence

WRONG = "perf.unexpected-intermediate-result"
DIVERGES = "perf.non-convergence"
NOT_PARALLEL = "perf.unexpected-parallelization-or-device"


@dataclass(frozen=True)
class Found:
    """One thing that is wrong, said once."""

    cause: str  # the fault in kebab case
    headline: str  # one sentence: rank, step, parameter, the user's line
    line: str  # `train.py:25`: where it is to be mended; empty where no line is known
    pattern: str  # of the study's fix patterns
    do: str  # what to change there
    why: str = ""
    symptom: str = WRONG
    title: str = ""
    confidence: Confidence = Confidence.CONFIRMED
    culprits: tuple[int, ...] = ()
    affected: tuple[int, ...] = ()
    quotes: tuple[tuple[int | None, str, str], ...] = ()  # rank, `train.py:25`, what was seen
    explains: tuple[str, ...] = field(default=())  # causes that follow from this one and are not told beside it


def without_consequences(found: Iterable[Found]) -> list[Found]:
    """Leaves out what another one explains, and what is said twice."""
    kept = list(dict.fromkeys(found))
    explained = {cause for one in kept for cause in one.explains if cause != one.cause}
    return [one for one in kept if one.cause not in explained]


def finding_of(found: Found, evidence: Evidence) -> Finding:
    """In the report's form."""
    place = _place(found.line, evidence)
    fix = Fix(
        pattern=found.pattern,
        title=FIX_PATTERNS[found.pattern].title,
        do=found.do,
        why=found.why,
        confirm="",
        safety=Safety.DISPLAY,
        where=place,
    )
    quotes = [_quote(rank, where, text) for rank, where, text in found.quotes]
    if not quotes and place is not None:
        quotes = [Quote(None, place.file, place.line, place.text, Role.ROOT)]
    victims = tuple(rank for rank in evidence.ranks if rank not in found.culprits) if found.culprits else ()
    return Finding(
        symptom=found.symptom,
        stage=Stage.of_symptom(found.symptom),
        cause=found.cause,
        rule=None,
        confidence=found.confidence,
        distributed_specific=True,
        distributed_why="It needs several ranks to show.",
        culprit_ranks=found.culprits,
        victim_ranks=victims,
        affected_ranks=found.affected or tuple(evidence.ranks),
        title=found.title or found.cause.replace("-", " ").capitalize(),
        summary=found.headline,
        fixes=(fix,),
        evidence=tuple(quotes),
        accused_by="quorum" if found.culprits else "",
        headline=found.headline,
        culprit_confidence=found.confidence if found.culprits else None,
        cause_confidence=found.confidence,
        place=place,
    )


def _place(line: str, evidence: Evidence) -> Place | None:
    name, _, number = line.rpartition(":")
    return Place(name, int(number), text=evidence.source(line)) if number.isdigit() else None


def _quote(rank: int | None, where: str, text: str) -> Quote:
    name, _, number = where.rpartition(":")
    return Quote(rank, name or "verify", int(number) if number.isdigit() else 0, text, Role.ROOT)
