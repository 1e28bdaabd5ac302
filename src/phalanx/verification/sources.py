"""What the user's lines say of numbers that are equal by chance: a loss that is halved, or divided by two ranks."""

from __future__ import annotations

import re

from phalanx.verification.evidence import Evidence

_RANKS = r"(?:world|n_?proc|num_proc|n_?ranks|num_ranks|replicas|\bws\b|nprocs|num_gpus|n_gpus|ngpus|\.size\(\))"
_DIVISOR = re.compile(r"(?:/=?|\.div_?\()\s*\(?\s*(?:float\()?([A-Za-z_][\w.]*(?:\(\))?)")


def divides_by_ranks(evidence: Evidence, place: str) -> bool:
    """Whether a line divides by a name that stands for the number of ranks: by what it is called, or by where it comes from."""
    for name in _DIVISOR.findall(evidence.source(place)):
        if re.search(_RANKS, name, re.IGNORECASE) or _comes_from_ranks(evidence, place, name):
            return True
    return False


def _comes_from_ranks(evidence: Evidence, place: str, name: str) -> bool:
    """Some line of the same file assigns it from the number of ranks."""
    given = re.compile(rf"(?:^|[\s,(]){re.escape(name)}\s*(?:,[^=]*)?=[^=].*{_RANKS}", re.IGNORECASE)
    return any(given.search(line) for line in evidence.lines(place.rpartition(":")[0]))
