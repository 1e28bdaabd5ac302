"""Puts a weighed claim into the words and the shape of a finding: what it says, of whom, on what evidence, and what to do."""

from __future__ import annotations

from collections import Counter

from phalanx.diagnosis.certainty import cause_confidence, confidence_of, culprit_confidence
from phalanx.diagnosis.claim import Claim
from phalanx.diagnosis.fixes import fixes_of
from phalanx.diagnosis.headline import after_first_sentence, headline_of, raised_in, rule_headline, values_of
from phalanx.diagnosis.history import History
from phalanx.diagnosis.ordinary import is_distributed
from phalanx.diagnosis.quoting import evidence_of, place_of
from phalanx.knowledge.rule import Claims
from phalanx.model import EventKind, Finding, Stage
from phalanx.model.ranks import name_ranks
from phalanx.model.template import fill


def as_finding(claim: Claim, history: History) -> Finding:
    """The finding that a claim makes."""
    values = values_of(claim, history)
    places = _places(claim, history)
    after = _deaths(claim)
    if claim.accusation.strategy in ("outlasted", "came-alone") and claim.depth is Claims.VICTIM:
        # Said of ranks that others left behind, the words of the rule would be the wrong way round.
        who, values["culprits"] = values["culprits"], ""
        places, after = "", f" The other ranks had ended well by then: {who} made more calls than they did."
    distributed, why = is_distributed(claim, history)
    message = fill(claim.summary, values)
    summary = message + places + after
    headline = headline_of(claim, summary, values)
    is_placed = values["others_at"] and values["others_at"] in headline
    detail = (after_first_sentence(message) + ("" if is_placed else places) + after).strip()
    if claim.rule is None and raised_in(claim) is not None:
        summary = f"{headline} {summary}".strip()
    return Finding(
        symptom=claim.symptom,
        stage=Stage.of_symptom(claim.symptom),
        cause=claim.cause,
        rule=claim.rule.code if claim.rule else None,
        confidence=confidence_of(claim),
        distributed_specific=distributed,
        distributed_why=why,
        culprit_ranks=tuple(sorted(claim.culprits)),
        victim_ranks=tuple(sorted(claim.victims - claim.culprits)),
        affected_ranks=tuple(sorted(claim.printers)),
        title=fill(claim.title, values),
        summary=summary,
        fixes=fixes_of(claim, claim.symptom, history.world.framework, values),
        evidence=evidence_of(claim.proofs),
        headline=headline,
        detail=detail if rule_headline(claim, values) else None,
        culprit_confidence=culprit_confidence(claim),
        cause_confidence=cause_confidence(claim),
        place=place_of(claim),
        accused_by=claim.accusation.strategy,
        because=claim.accusation.because,
    )


def _places(claim: Claim, history: History) -> str:
    """Where the accused stood in the user's code, and where the ranks that waited for it, if both are known and differ."""
    if not claim.is_about_others or not claim.culprits:
        return ""
    stood = history.places
    waited = Counter(stood[rank] for rank in claim.printers - claim.culprits if rank in stood)
    elsewhere = {stood[rank] for rank in claim.culprits if rank in stood}
    if not waited or len(elsewhere) != 1 or elsewhere & waited.keys():
        return ""
    who = name_ranks(claim.culprits)
    return f" The others stood at {waited.most_common(1)[0][0]}, {who} at {elsewhere.pop()}."


def _deaths(claim: Claim) -> str:
    """What the watch knows of the death that the claim is about: the kernel's figures, the frame of a crash."""
    dead = [proof.event for proof in claim.roots if proof.event.kind is EventKind.EXIT]
    told = {
        event.rank: str(why["text"])
        for event in dead
        if isinstance(why := event.data.get("why"), dict) and why.get("text")
    }
    texts = {text for rank, text in told.items() if rank in claim.culprits and text not in claim.summary}
    return f" The watch saw: {texts.pop()}." if len(texts) == 1 and claim.culprits == told.keys() else ""
