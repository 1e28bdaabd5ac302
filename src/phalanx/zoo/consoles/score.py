"""Scores the diagnosis on consoles: what was found where the console shows it, and who was accused without reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.zoo.consoles.cell import HELD_BACK, OPEN, Truth
from phalanx.zoo.tables import TextTable

# one letter for each miss in the matrix, the worst first
LETTERS = {"innocent": "!", "false_alarm": "a", "culprit": "w", "symptom": "s", "cause": "c", "fix": "f"}


@dataclass(frozen=True, slots=True)
class Mark:
    """How one console fared. None where the console does not show what would be needed to be right."""

    truth: Truth
    accused: tuple[int, ...]
    got: str | None
    rule: str | None
    innocent: bool
    false_alarm: bool
    culprit: bool | None
    symptom: bool | None
    cause: bool | None
    fix: bool | None

    @property
    def letters(self) -> str:
        """The misses, or "." where nothing is wrong."""
        wrong = [
            letter for key, letter in LETTERS.items() if getattr(self, key) is (key in ("innocent", "false_alarm"))
        ]
        return "".join(wrong) or "."


def mark(truth: Truth, report: Mapping[str, Any], causes: Mapping[str, frozenset[str]]) -> Mark:
    """Compare a report (`phalanx.report/1`) with the truth of a console.

    Where the console does not show who it was, accusing nobody is right, and so is accusing the true culprit.
    """
    verdict: Mapping[str, Any] = report.get("verdict") or {}
    accused = set(verdict.get("culprit_ranks") or ())
    guilty = set(truth.true_culprits)
    shown = set(truth.shows)
    fixes = [fix.get("pattern") for fix in verdict.get("fixes") or () if fix.get("basis") != "study"]
    same = {truth.cause, *causes.get(truth.cause or "", ())}
    exact = accused == set(truth.culprits) if truth.culprits else accused <= guilty
    return Mark(
        truth=truth,
        accused=tuple(sorted(accused)),
        got=verdict.get("symptom"),
        rule=verdict.get("rule"),
        innocent=bool(accused - guilty),
        false_alarm=truth.healthy and bool(verdict),
        culprit=None if truth.healthy else exact,
        symptom=verdict.get("symptom") in (truth.symptom, *truth.also) if "what" in shown else None,
        cause=verdict.get("cause") in same if "why" in shown else None,
        fix=(fixes[0] if fixes else "") in truth.fixes if "what" in shown else None,
    )


def _share(marks: Iterable[Mark], key: str) -> str:
    values = [getattr(one, key) for one in marks if getattr(one, key) is not None]
    return f"{100 * sum(values) / len(values):.1f} % of {len(values)}" if values else "–"


def totals(marks: Sequence[Mark], title: str) -> TextTable:
    """One row for each split."""
    rows = []
    for split in dict.fromkeys((OPEN, HELD_BACK, *(one.truth.split for one in marks))):
        some = [one for one in marks if one.truth.split == split]
        if not some:
            continue
        sick = [one for one in some if not one.truth.healthy]
        named = [one for one in sick if one.truth.culprits]
        rows.append(
            (
                split,
                str(len(some)),
                _share(named, "culprit"),
                _share(sick, "culprit"),
                f"{100 * sum(one.innocent for one in some) / len(some):.1f} %",
                _share(sick, "symptom"),
                _share(sick, "cause"),
                _share(sick, "fix"),
                f"{sum(one.false_alarm for one in some)} of {len(some) - len(sick)}",
            )
        )
    headings = (
        "split",
        "consoles",
        "culprit exact where shown",
        "culprit exact or rightly nobody",
        "innocent accused",
        "symptom",
        "cause",
        "first fix",
        "false alarms",
    )
    return TextTable(title, headings, tuple(rows))


def matrix(marks: Sequence[Mark]) -> TextTable:
    """Situations by forms for the open cells; of those held back only that they are."""
    marks = [one for one in marks if one.truth.split in (OPEN, HELD_BACK)]
    at = {(one.truth.situation, one.truth.form): one for one in marks}
    forms = list(dict.fromkeys(one.truth.form for one in sorted(marks, key=lambda one: one.truth.form)))
    situations = list(dict.fromkeys(one.truth.situation for one in sorted(marks, key=lambda one: one.truth.situation)))
    rows = []
    for situation in situations:
        cells = [at.get((situation, form)) for form in forms]
        shown = ["" if one is None else "▒" if one.truth.split == HELD_BACK else one.letters for one in cells]
        rows.append((situation, *shown))
    title = "Situation by form: . right, w who, s symptom, c cause, f first fix, ! innocent accused, a false alarm, ▒ held back"
    return TextTable(title, ("situation", *forms), tuple(rows))


def misses(marks: Sequence[Mark]) -> list[str]:
    """A line for each console that is not right, of those that are not held back."""
    return [
        f"{one.letters:<6} {one.truth.situation}/{one.truth.form}: wanted {one.truth.symptom} {one.truth.cause} "
        f"{list(one.truth.culprits)[:8]}, got {one.got} {one.rule} {list(one.accused)[:8]} "
        f"(torch {one.truth.torch}, {one.truth.world} ranks, {one.truth.parallelism})"
        for one in marks
        if one.truth.split != HELD_BACK and one.letters != "."
    ]
