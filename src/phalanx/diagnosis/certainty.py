"""How sure a finding is: of what happened, of who did it, and of why. What a process itself shows is never only possible."""

from __future__ import annotations

from phalanx.diagnosis.claim import Claim
from phalanx.knowledge.rule import Claims
from phalanx.model import Confidence, EventKind


def confidence_of(claim: Claim) -> Confidence:
    """How sure it is that this happened and ended the job: of a rank's own exception or exit status there is no doubt."""
    is_open = claim.rule is None or claim.depth is not Claims.CAUSE
    if is_open and claim.confidence is Confidence.POSSIBLE and _is_own(claim):
        return Confidence.LIKELY if claim.is_communication else Confidence.CONFIRMED
    return claim.confidence


def culprit_confidence(claim: Claim) -> Confidence | None:
    """How sure it is who: certain if the accused show it themselves, inferred if others do."""
    if not claim.culprits:
        return None
    if _is_own(claim) and not claim.is_communication:
        return Confidence.CONFIRMED
    return Confidence.LIKELY if claim.confidence is Confidence.POSSIBLE else claim.confidence


def cause_confidence(claim: Claim) -> Confidence:
    """How sure it is why: a claim that only tells what happened leaves that open."""
    if claim.rule is None:
        return Confidence.POSSIBLE if claim.depth is not Claims.CAUSE else claim.confidence
    if claim.depth is Claims.CAUSE or claim.is_explained:
        return claim.confidence
    return min(claim.confidence, Confidence.LIKELY, key=lambda one: one.weight)


def _is_own(claim: Claim) -> bool:
    """The accused (or, where nobody is, all that show it) raised the exception or ended themselves."""
    if claim.is_about_others:
        return False
    own = [proof.event for proof in claim.roots if not claim.culprits or proof.event.rank in claim.culprits]
    return any(event.kind is EventKind.EXIT or (event.kind is EventKind.EXCEPTION and event.frames) for event in own)
