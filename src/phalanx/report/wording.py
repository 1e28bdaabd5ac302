"""What all forms of the report say in the same words: how sure a finding is, and what its headline leaves out."""

from __future__ import annotations

import re

from phalanx.model import Basis, Finding, Fix

_MOST_FIXES = 3
_BESIDE_EVIDENCE = 1  # of a rule's other fixes, where something in this job points to one

_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"])")


def certainty(finding: Finding) -> str:
    """`likely`, or who and why apart where they differ."""
    who, why = finding.culprit_confidence, finding.cause_confidence or finding.confidence
    if who is None or who == why:
        return why.value
    return f"who: {who.value}, why: {why.value}"


def what_headline_leaves_out(finding: Finding) -> str:
    """The summary without the sentence that the headline already says."""
    if finding.detail is not None:
        return finding.detail
    if finding.summary.startswith(finding.first_line):
        return finding.summary.removeprefix(finding.first_line).strip()
    first, *rest = _SENTENCE_ENDS.split(finding.summary)
    return " ".join(rest) if _bare(first)[:60] in _bare(finding.first_line) else finding.summary


def _bare(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def best_fixes(finding: Finding) -> tuple[Fix, ...]:
    """What to show first: if the job itself points to a fix, hardly anything else is worth reading."""
    pointed = [fix for fix in finding.shown_fixes if fix.basis is Basis.EVIDENCE]
    others = [fix for fix in finding.shown_fixes if fix.basis is Basis.RULE]
    room = _BESIDE_EVIDENCE if pointed else _MOST_FIXES
    return (*pointed, *others[:room])[:_MOST_FIXES]


def says_the_same(finding: Finding, verdict: Finding) -> bool:
    """Whether a further finding is only another view of the verdict: the same symptom, on the same ranks."""
    return (finding.symptom, finding.culprit_ranks) == (verdict.symptom, verdict.culprit_ranks) and bool(
        verdict.culprit_ranks
    )
