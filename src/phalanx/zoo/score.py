"""Scores verdicts against the truth: hits, and beside them always the false accusations and false alarms."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from phalanx.zoo.fault import Fault, FaultError
from phalanx.zoo.named import Named

SCHEMA = "phalanx.score/2"


@dataclass(frozen=True, slots=True)
class Mark:
    """How one verdict fared. `named` is whom the framework itself named, None where it named nobody."""

    name: str
    framework: str
    split: str
    healthy: bool
    culprits: tuple[int, ...]
    wanted: str | None
    got: str | None
    rule: str | None
    symptom_first: bool
    symptom_in_three: bool
    cause: bool
    culprit_exact: bool
    innocent_accused: bool
    fix_first: bool
    fix_in_three: bool
    false_alarm: bool
    seconds: float | None
    named: tuple[int, ...] | None
    named_by: tuple[str, ...]

    @property
    def named_exact(self) -> bool:
        return self.named is not None and set(self.named) == set(self.culprits)

    @property
    def named_innocent(self) -> bool:
        return self.named is not None and bool(set(self.named) - set(self.culprits))


def read_causes(zoo: Path) -> dict[str, frozenset[str]]:
    """The names that mean the same cause (`causes.toml`); a zoo without that file has none."""
    file = zoo / "causes.toml"
    if not file.is_file():
        return {}
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FaultError(f"{file}: not valid TOML: {error}") from None
    return {cause: frozenset(names) for cause, names in raw.items()}


def read_report(file: Path) -> dict[str, Any] | None:
    """Another tool's report on a fault; None where there is none. Raises FaultError where it cannot be scored."""
    if not file.is_file():
        return None
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FaultError(f"{file}: not JSON: {error}") from None
    verdict = report.get("verdict") if isinstance(report, dict) else ""
    if not isinstance(verdict, dict | None):
        raise FaultError(f'{file}: expected an object with "verdict", itself an object or null; see docs/zoo.md')
    return dict(report)


def mark(
    fault: Fault,
    report: Mapping[str, Any] | None,
    *,
    causes: Mapping[str, frozenset[str]] | None = None,
    named: Named | None = None,
    seconds: float | None = None,
) -> Mark:
    """Compare a report (`phalanx.report/1`, or None where there is none) with the truth.

    An accused rank that is not among the culprits is innocent. Only the keys that are scored need to be there:
    `verdict` with `symptom`, `cause`, `culprit_ranks` and `fixes[].pattern`, and `findings` for the best three.
    """
    verdict: Mapping[str, Any] = (report or {}).get("verdict") or {}
    findings = (report or {}).get("findings") or ([verdict] if verdict else [])
    accused = set(verdict.get("culprit_ranks") or ())
    # Fixes that only the study knows are not shown, so they do not count.
    patterns = [fix.get("pattern") for fix in verdict.get("fixes") or () if fix.get("basis") != "study"]
    same = {fault.cause, *(causes or {}).get(fault.cause or "", ())} - {None}
    return Mark(
        name=fault.name,
        framework=fault.framework,
        split=fault.split,
        healthy=fault.healthy,
        culprits=fault.culprit_ranks,
        wanted=fault.symptom,
        got=verdict.get("symptom"),
        rule=verdict.get("rule"),
        symptom_first=bool(verdict) and verdict.get("symptom") == fault.symptom,
        symptom_in_three=any(finding.get("symptom") == fault.symptom for finding in findings[:3]),
        cause=verdict.get("cause") in same,
        culprit_exact=accused == set(fault.culprit_ranks),
        innocent_accused=bool(accused - set(fault.culprit_ranks)),
        fix_first=bool(set(patterns[:1]) & set(fault.accepted_fixes)),
        fix_in_three=bool(set(patterns[:3]) & set(fault.accepted_fixes)),
        false_alarm=fault.healthy and bool(verdict),
        seconds=seconds,
        named=tuple(sorted(named.ranks)) if named is not None and named.ranks else None,
        named_by=named.by if named is not None else (),
    )


@dataclass(frozen=True, slots=True)
class Score:
    """Shares over a set of marks; healthy jobs count only for false alarms and accusations.

    `named_…` is the framework's own word, over the `with_culprit` faults in which single ranks are to blame,
    because only there naming one can be right; `ours_…` are the same shares for the verdicts.
    """

    faults: int
    healthy: int
    symptom_first: float
    symptom_in_three: float
    cause: float
    culprit_exact: float
    innocent_accused: float
    fix_first: float
    fix_in_three: float
    false_alarms: int
    seconds: float | None
    with_culprit: int
    named_exact: float
    named_innocent: float
    ours_exact: float
    ours_innocent: float


def total(marks: Sequence[Mark]) -> Score:
    """The score of these marks; shares are 0 where there is nothing to share. `seconds` is the median."""
    faults = [one for one in marks if not one.healthy]
    culprit = [one for one in faults if one.culprits]
    times = sorted(one.seconds for one in marks if one.seconds is not None)

    def share(key: str, among: Sequence[Mark]) -> float:
        return sum(bool(getattr(one, key)) for one in among) / len(among) if among else 0.0

    return Score(
        faults=len(faults),
        healthy=len(marks) - len(faults),
        symptom_first=share("symptom_first", faults),
        symptom_in_three=share("symptom_in_three", faults),
        cause=share("cause", faults),
        culprit_exact=share("culprit_exact", faults),
        innocent_accused=share("innocent_accused", marks),
        fix_first=share("fix_first", faults),
        fix_in_three=share("fix_in_three", faults),
        false_alarms=sum(one.false_alarm for one in marks),
        seconds=times[len(times) // 2] if times else None,
        with_culprit=len(culprit),
        named_exact=share("named_exact", culprit),
        named_innocent=share("named_innocent", culprit),
        ours_exact=share("culprit_exact", culprit),
        ours_innocent=share("innocent_accused", culprit),
    )


def groups(marks: Sequence[Mark]) -> dict[str, dict[str, list[Mark]]]:
    """The marks whole, by split, by framework and by symptom; healthy jobs have no symptom."""

    def by(key: Callable[[Mark], str | None]) -> dict[str, list[Mark]]:
        names = sorted({name for one in marks if (name := key(one)) is not None})
        return {name: [one for one in marks if key(one) == name] for name in names}

    return {
        "all": {"all": list(marks)},
        "split": by(lambda one: one.split),
        "framework": by(lambda one: one.framework),
        "symptom": by(lambda one: one.wanted),
    }


def as_json(marks: Sequence[Mark]) -> dict[str, Any]:
    """For machines: every mark, and the totals by split, framework and symptom."""
    grouped = groups(marks)
    totals = {
        f"by_{kind}": {name: asdict(total(some)) for name, some in parts.items()} for kind, parts in grouped.items()
    }
    return {
        "schema": SCHEMA,
        "all": totals.pop("by_all")["all"],
        **totals,
        "marks": [{part.name: getattr(one, part.name) for part in fields(one)} for one in marks],
    }
