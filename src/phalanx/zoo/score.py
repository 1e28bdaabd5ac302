"""Scores verdicts against the truth: hits, and beside them always the false accusations and false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from phalanx.model import Report
from phalanx.zoo.fault import Fault


@dataclass(frozen=True, slots=True)
class Mark:
    """How one verdict fared."""

    name: str
    framework: str
    split: str
    healthy: bool
    wanted: str | None
    got: str | None
    rule: str | None
    symptom_first: bool
    symptom_in_three: bool
    culprit_exact: bool
    innocent_accused: bool
    fix_first: bool
    fix_in_three: bool
    false_alarm: bool


def mark(fault: Fault, report: Report) -> Mark:
    """Compare a report with the truth. An accused rank that is not among the culprits is innocent."""
    verdict = report.verdict
    accused = set(verdict.culprit_ranks) if verdict else set()
    patterns = [fix.pattern for fix in verdict.fixes] if verdict else []
    return Mark(
        name=fault.name,
        framework=fault.framework,
        split=fault.split,
        healthy=fault.healthy,
        wanted=fault.symptom,
        got=verdict.symptom if verdict else None,
        rule=verdict.rule if verdict else None,
        symptom_first=verdict is not None and verdict.symptom == fault.symptom,
        symptom_in_three=any(finding.symptom == fault.symptom for finding in report.findings[:3]),
        culprit_exact=accused == set(fault.culprit_ranks),
        innocent_accused=bool(accused - set(fault.culprit_ranks)),
        fix_first=bool(set(patterns[:1]) & set(fault.accepted_fixes)),
        fix_in_three=bool(set(patterns[:3]) & set(fault.accepted_fixes)),
        false_alarm=fault.healthy and verdict is not None,
    )


@dataclass(frozen=True, slots=True)
class Score:
    """Shares over a set of marks; the healthy ones count only for false alarms and accusations."""

    faults: int
    healthy: int
    symptom_first: float
    symptom_in_three: float
    culprit_exact: float
    fix_first: float
    fix_in_three: float
    innocent_accused: float
    false_alarms: int


def total(marks: Sequence[Mark]) -> Score:
    """The score of these marks; shares are 0 where there is nothing to share."""
    faults = [one for one in marks if not one.healthy]

    def share(key: str, among: Sequence[Mark]) -> float:
        return sum(bool(getattr(one, key)) for one in among) / len(among) if among else 0.0

    return Score(
        faults=len(faults),
        healthy=len(marks) - len(faults),
        symptom_first=share("symptom_first", faults),
        symptom_in_three=share("symptom_in_three", faults),
        culprit_exact=share("culprit_exact", faults),
        fix_first=share("fix_first", faults),
        fix_in_three=share("fix_in_three", faults),
        innocent_accused=share("innocent_accused", marks),
        false_alarms=sum(one.false_alarm for one in marks),
    )


def as_json(marks: Sequence[Mark]) -> dict[str, Any]:
    """For machines: every mark, and the totals by split and framework."""
    splits = sorted({one.split for one in marks})
    frameworks = sorted({one.framework for one in marks})
    return {
        "schema": "phalanx.score/1",
        "all": asdict(total(marks)),
        "by_split": {split: asdict(total([one for one in marks if one.split == split])) for split in splits},
        "by_framework": {name: asdict(total([one for one in marks if one.framework == name])) for name in frameworks},
        "marks": [asdict(one) for one in marks],
    }
