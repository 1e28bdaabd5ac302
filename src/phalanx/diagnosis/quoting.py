"""Chooses what a finding quotes: each observation once, ranks that print the same folded together, and the user's own line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from phalanx.diagnosis.claim import Claim, Proof
from phalanx.diagnosis.headline import frame_of
from phalanx.model import Evidence, Place, Role
from phalanx.sources.secrets import redact
from phalanx.sources.text import without_numbers
from phalanx.sources.user_code import source_line

_MOST_EVIDENCE = 12
_LONGEST = 600
_NAME = re.compile(
    r"^(?:what\(\): +|[\w.:]+: )"
)  # of the exception, which libraries and wrappers spell in their own way


def evidence_of(proofs: Sequence[Proof]) -> tuple[Evidence, ...]:
    """The quotations, best first: what made the claim before what only supports it, no line and no text twice."""
    alike: dict[str, list[Proof]] = {}
    lines: set[tuple[str, int, int | None]] = set()
    for proof in sorted(proofs, key=lambda proof: (proof.role is not Role.ROOT, proof.event.rank is None)):
        place = (proof.event.file, proof.event.line, proof.event.rank)
        if place in lines:
            continue  # one line may answer several demands of a rule
        lines.add(place)
        text = without_numbers(_NAME.sub("", " ".join(proof.event.text.split()))[:_LONGEST])
        same = next((known for known in alike if text in known), text)  # a `what():` repeats its exception's words
        alike.setdefault(same, []).append(proof)
    return tuple(_quoted(same) for same in list(alike.values())[:_MOST_EVIDENCE])


def place_of(claim: Claim) -> Place | None:
    """The user's line with its text: from the traceback, or from the file where it is here."""
    frame = frame_of(claim)
    if frame is None:
        return None
    text = redact(frame.source or source_line(frame.file, frame.line))
    return Place(frame.file, frame.line, frame.function, text)


def _quoted(same: list[Proof]) -> Evidence:
    event = same[0].event
    line = event.true_line(event.line)
    others = {proof.event.rank for proof in same if proof.event.rank is not None} - {event.rank}
    return Evidence(
        rank=event.rank,
        file=event.file,
        line=line,
        text=" ".join(event.text.split())[:_LONGEST],
        role=same[0].role,
        host=event.host,
        context=tuple((number - event.line + line, text) for number, text in event.context() if line or not event.line),
        alike=tuple(sorted(others)),
    )
