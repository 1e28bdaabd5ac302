"""Distributed or ordinary? The study's first finding: the two look alike, so every finding says which it is and why."""

from __future__ import annotations

from phalanx.diagnosis.claim import Claim
from phalanx.diagnosis.history import History
from phalanx.knowledge.figures import distributed_share, fault_count
from phalanx.knowledge.rule import Claims
from phalanx.model import Event
from phalanx.sources.text import without_numbers


def is_distributed(claim: Claim, history: History) -> tuple[bool, str]:
    """Whether the fault is specific to distributed training, and the reason in a sentence."""
    stated = claim.rule.distributed if claim.rule is not None else None
    world = history.world.all_ranks
    same = _same_everywhere(claim, history)
    if stated is False:
        return (
            False,
            "This fault does not depend on the number of processes: run the script with one process to find it faster.",
        )
    if stated is True:
        return True, "This fault needs several processes or devices to show."
    if claim.rule is None and claim.depth is Claims.CAUSE:
        return True, "Only the comparison of the ranks shows it."
    if claim.is_communication:
        return True, "Ranks that wait for or lose one another need more than one process."
    if claim.depth is Claims.VICTIM or claim.culprits:
        return True, "Not all ranks fail alike, so one process alone may not show it."
    if same and len(world) > 1:
        return False, (
            "Every rank fails alike at the same line, so it would fail on one device too: run it with one process to fix it faster."
        )
    share = distributed_share(claim.symptom)
    count = fault_count(claim.symptom)
    return share >= 0.5, (
        f"The evidence does not tell; of the {count} faults with this symptom in the study {share:.0%} were specific to distributed training."
    )


def _same_everywhere(claim: Claim, history: History) -> bool:
    """All ranks show the same exception at the same line of the user's."""
    roots = [proof.event for proof in claim.roots]
    ranks = {event.rank for event in roots if event.rank is not None}
    if not ranks or ranks < history.world.seen:
        return False
    return len({_fingerprint(event) for event in roots}) == 1


def _fingerprint(event: Event) -> tuple[str, str, int]:
    frame = event.user_frame
    text = without_numbers(str(event.data.get("headline", event.text)))[:200]
    return (text, frame.file if frame else "", frame.line if frame else 0)
