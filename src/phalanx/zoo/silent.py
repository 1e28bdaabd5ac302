"""Scores `phalanx verify` on the silent wing: faults found, causes named, and beside them always the false alarms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from phalanx.zoo.fault import Fault
from phalanx.zoo.score import mark
from phalanx.zoo.tables import TextTable
from phalanx.zoo.verified import Verified

SCHEMA = "phalanx.score-silent/1"
HELD_BACK = "test"


@dataclass(frozen=True, slots=True)
class SilentMark:
    """How one run of verify fared. `kind` is fault, twin or healthy; of the last two only the alarm counts."""

    name: str
    kind: str
    split: str
    group: str
    framework: str
    found: bool
    cause: bool
    cause_in_three: bool
    symptom: bool
    line: bool
    culprit_exact: bool
    innocent_accused: bool
    false_alarm: bool
    broken: bool
    seconds: float
    plain_s: float | None
    slow: bool
    got: str | None
    summary: str


def silent_mark(fault: Fault, result: Verified, causes: Mapping[str, frozenset[str]]) -> SilentMark:
    """Compare what verify said with the truth."""
    plain = mark(fault, result.report, causes=causes)
    verdict: Mapping[str, Any] = (result.report or {}).get("verdict") or {}
    findings: Sequence[Mapping[str, Any]] = (result.report or {}).get("findings") or ([verdict] if verdict else [])
    same = {fault.cause, *causes.get(fault.cause or "", ())}
    ill = not fault.healthy and not result.twin
    accused = {rank for one in findings for rank in one.get("culprit_ranks") or ()}
    return SilentMark(
        name=fault.name,
        kind="fault" if ill else "twin" if result.twin else "healthy",
        split=fault.split,
        group=fault.group or "",
        framework=_framework(fault),
        found=ill and bool(verdict),
        cause=ill and plain.cause,
        cause_in_three=ill and any(one.get("cause") in same for one in findings[:3]),
        symptom=ill and plain.symptom_first,
        line=ill and _names_line(fault, verdict),
        culprit_exact=ill and bool(verdict) and plain.culprit_exact,
        innocent_accused=bool(accused - set(fault.culprit_ranks)) if ill else bool(accused),
        false_alarm=not ill and result.alarmed,
        broken=result.report is None or result.status not in (0, 1),
        seconds=result.seconds,
        plain_s=result.plain_s,
        slow=result.slow,
        got=verdict.get("cause"),
        summary=str(verdict.get("summary") or result.said[-300:]),
    )


def _framework(fault: Fault) -> str:
    """The library that the user sees, which may be one on top of the framework."""
    prefix = fault.name.split("-")[0]
    return prefix if prefix in ("accelerate", "lightning", "transformers") else fault.framework


def line_number(fault: Fault) -> int | None:
    """Where the line at fault stands in the script."""
    if fault.line is None:
        return None
    lines = (fault.folder / "train.py").read_text(encoding="utf-8").splitlines()
    return next((number for number, text in enumerate(lines, 1) if fault.line in text), None)


def _names_line(fault: Fault, verdict: Mapping[str, Any]) -> bool:
    """Whether the verdict points at the line, by a fix or by evidence."""
    wanted = line_number(fault)
    wheres = [fix.get("where") or {} for fix in verdict.get("fixes") or ()]
    wheres += list(verdict.get("evidence") or ())
    return any(where.get("line") == wanted and Path(where.get("file") or "").name == "train.py" for where in wheres)


@dataclass(frozen=True, slots=True)
class Totals:
    """The figures of one set of marks."""

    faults: int
    found: int
    cause: int
    cause_in_three: int
    line: int
    culprit_exact: int
    innocent_accused: int
    twins: int
    twin_alarms: int
    healthy: int
    healthy_alarms: int
    broken: int
    seconds: float | None
    slow: int


def total(marks: Sequence[SilentMark]) -> Totals:
    """Numbers, not shares: the sets are small."""
    faults = [one for one in marks if one.kind == "fault"]
    twins = [one for one in marks if one.kind == "twin"]
    healthy = [one for one in marks if one.kind == "healthy"]
    times = sorted(one.seconds for one in marks)
    return Totals(
        faults=len(faults),
        found=sum(one.found for one in faults),
        cause=sum(one.cause for one in faults),
        cause_in_three=sum(one.cause_in_three for one in faults),
        line=sum(one.line for one in faults),
        culprit_exact=sum(one.culprit_exact for one in faults),
        innocent_accused=sum(one.innocent_accused for one in marks),
        twins=len(twins),
        twin_alarms=sum(one.false_alarm for one in twins),
        healthy=len(healthy),
        healthy_alarms=sum(one.false_alarm for one in healthy),
        broken=sum(one.broken for one in marks),
        seconds=times[len(times) // 2] if times else None,
        slow=sum(one.slow for one in marks),
    )


def sets(marks: Sequence[SilentMark]) -> Iterator[tuple[str, list[SilentMark]]]:
    """The whole, the splits, the groups of faults and the frameworks."""
    yield "all", list(marks)
    keys: tuple[tuple[str, Callable[[SilentMark], str]], ...] = (
        ("split", lambda one: one.split),
        ("group", lambda one: one.group),
        ("framework", lambda one: one.framework),
    )
    for title, key in keys:
        for name in sorted({key(one) for one in marks}):
            yield f"{title} {name}", [one for one in marks if key(one) == name]


HEADINGS = (
    "set",
    "faults",
    "found",
    "cause named",
    "in three",
    "line named",
    "ranks exact",
    "innocent accused",
    "alarms on twins",
    "on healthy jobs",
    "no report",
)


def table(marks: Sequence[SilentMark], *, times: bool) -> TextTable:
    """Hits and alarms by split, group and framework."""
    rows = []
    for name, some in sets(marks):
        one = total(some)
        cells = [name, str(one.faults)]
        hits = (one.found, one.cause, one.cause_in_three, one.line, one.culprit_exact)
        cells += [f"{hit} ({hit / one.faults:.0%})" if one.faults else "" for hit in hits]
        cells += [str(one.innocent_accused), f"{one.twin_alarms} of {one.twins}" if one.twins else ""]
        cells += [f"{one.healthy_alarms} of {one.healthy}" if one.healthy else "", str(one.broken)]
        if times:
            timed = sum(mark.plain_s is not None for mark in some)
            cells += ["" if one.seconds is None else f"{one.seconds:.1f}", f"{one.slow} of {timed}" if timed else ""]
        rows.append(tuple(cells))
    headings = (*HEADINGS, "seconds", "over 3 × plain + 5 s") if times else HEADINGS
    return TextTable(
        "Training that runs and is wrong: `phalanx verify` on scripts, twins and healthy jobs", headings, tuple(rows)
    )


def jobs_table(zoo: Iterable[Fault]) -> TextTable:
    """The open part of the wing: what each fault is, in an expert's words."""
    rows = tuple(
        (one.name, one.group or "", one.cause or "", one.says or "")
        for one in zoo
        if one.says and one.split != HELD_BACK
    )
    return TextTable("The open faults", ("fault", "group", "cause", "what an expert would say"), rows)


def misses(marks: Sequence[SilentMark]) -> Iterator[str]:
    """One line for each job in which something was wrong; of the held-back split only numbers."""
    for one in marks:
        if one.split == HELD_BACK:
            continue
        wrong = []
        if one.false_alarm:
            wrong.append(f"FALSE ALARM: {one.got}: {one.summary}")
        if one.broken:
            wrong.append(f"no report: {one.summary}")
        if one.kind == "fault" and not one.found:
            wrong.append("not found")
        elif one.kind == "fault" and not one.cause:
            wrong.append(f"cause {one.got}: {one.summary}")
        if one.innocent_accused:
            wrong.append("INNOCENT ACCUSED")
        if wrong:
            yield f"{one.name} ({one.kind}): {'; '.join(wrong)}"
    held = [one for one in marks if one.split == HELD_BACK]
    for group in sorted({one.group for one in held}):
        some = total([one for one in held if one.group == group])
        yield f"held back, {group}: {some.found} of {some.faults} found, {some.cause} causes, {some.twin_alarms + some.healthy_alarms} false alarms"


def as_json(marks: Sequence[SilentMark]) -> dict[str, Any]:
    """For machines: the totals, and every mark of the open split."""
    return {
        "schema": SCHEMA,
        "totals": {name: asdict(total(some)) for name, some in sets(marks)},
        "marks": [asdict(one) for one in marks if one.split != HELD_BACK],
    }
