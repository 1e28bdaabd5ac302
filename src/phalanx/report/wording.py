"""What all forms of the report say in the same words: how sure a finding is, and what its headline leaves out."""

from __future__ import annotations

import re

from phalanx.model import Finding

_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"])")


def certainty(finding: Finding) -> str:
    """`likely`, or who and why apart where they differ."""
    who, why = finding.culprit_confidence, finding.cause_confidence or finding.confidence
    if who is None or who == why:
        return why.value
    return f"who: {who.value}, why: {why.value}"


def what_headline_leaves_out(finding: Finding) -> str:
    """The summary without the sentence that the headline already says."""
    if finding.summary.startswith(finding.first_line):
        return finding.summary.removeprefix(finding.first_line).strip()
    first, *rest = _SENTENCE_ENDS.split(finding.summary)
    return " ".join(rest) if _bare(first)[:60] in _bare(finding.first_line) else finding.summary


def _bare(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())
