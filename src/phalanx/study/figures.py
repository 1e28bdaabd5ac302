"""The study's figures: counted from the authors' sheet, rendered as the file that is shipped.

The sheet `faults` of `final-categories.xlsx` looks like this (one row a fault):

    Type       | Link   | distributed-specific | stage               | inner-category | leaf category | fix…
    SO-pytorch | https… | 1                    | communication setup |                | setup failure | fix…
               |        | 1                    | communication setup |                | setup failure | fix…

A row with an empty link is one more fault of the issue above it, and has that issue's type.
Only counts leave this module: no row, link or text of the data is shipped.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.study.errors import StudyError
from phalanx.study.labels import (
    CONFIGURATION_PATTERNS,
    FIX_PATTERNS,
    STAGES,
    SYMPTOMS,
    UnknownLabelError,
    fold_fixes,
    fold_framework,
    fold_source,
    fold_symptom,
    normalise,
)
from phalanx.study.sheets import DAMAGE, open_workbook, read_rows

SCHEMA = "phalanx.figures/1"
SHEET_FILE = "final-categories.xlsx"
SHIPPED_FILE = Path(__file__).resolve().parent.parent / "knowledge" / "figures.json"
TOP_LABELS = 5

FAULT_COLUMNS = (
    "Type",
    "Link",
    "distributed-specific",
    "stage",
    "inner-category",
    "leaf category",
    "fix pattern",
)
HOW_TO_COLUMNS = ("Type", "Link", "how-to topic", "sub-topic")

CITATION = (
    "Liu, Gu, Chen, Wen, Zhang, Ma, Wang, Jin: Rise of Distributed Deep Learning Training in the "
    "Big Model Era: From a Software Engineering Perspective, ACM TOSEM 2023 (arXiv 2112.06222)"
)
_SOURCE = {
    "citation": CITATION,
    "licence": "Apache-2.0",
    "description": (
        "Counts over the final labels of the authors' replication package (TOSEM23-DistributedTraining), "
        "folded by phalanx.study.labels"
    ),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the sheet, folded."""

    symptom: str
    framework: str
    distributed_specific: bool
    label: str
    fixes: tuple[str, ...]
    source: str = ""
    continued: bool = False  # one more fault of the issue above it
    row: int = 0  # of the sheet, as a spreadsheet numbers it

    @property
    def fix(self) -> str:
        """The pattern the fault counts as: the first one its cell names."""
        return self.fixes[0]

    @property
    def cured_in_configuration(self) -> bool:
        return not CONFIGURATION_PATTERNS.isdisjoint(self.fixes)


@dataclass(frozen=True, slots=True)
class FrameworkFigures:
    """The faults of one symptom in one framework, and what cured them."""

    faults: int
    fixes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SymptomFigures:
    """One symptom. `top_labels` are the sheet's own most frequent labels, folded by case and space only."""

    stage: str
    faults: int
    distributed_specific: int
    fixes: Mapping[str, int]
    top_labels: tuple[tuple[str, int], ...]
    by_framework: Mapping[str, FrameworkFigures]

    @property
    def mixed(self) -> bool:
        """Whether faults of both kinds, distributed-specific and ordinary, show this symptom."""
        return 0 < self.distributed_specific < self.faults


@dataclass(frozen=True, slots=True)
class FixFigures:
    """One fix pattern: how many faults it cured, and in which framework."""

    count: int
    by_framework: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures that the project quotes from the study."""

    faults: int
    how_to_questions: int
    distributed_specific: int
    cured_in_configuration: int
    by_framework: Mapping[str, int]
    symptoms: Mapping[str, SymptomFigures]
    fixes: Mapping[str, FixFigures]

    @property
    def issues(self) -> int:
        return self.faults + self.how_to_questions

    @property
    def mixed_symptoms(self) -> int:
        return sum(symptom.mixed for symptom in self.symptoms.values())

    @property
    def configuration_share(self) -> float:
        return self.cured_in_configuration / self.faults


def compute_figures(directory: Path) -> Figures:
    """Count the figures from the folder that holds the authors' files."""
    workbook = open_workbook(directory / SHEET_FILE)
    try:
        faults = fold_rows(read_rows(workbook, "faults", FAULT_COLUMNS))
        how_to = sum(1 for _ in read_rows(workbook, "how-to questions", HOW_TO_COLUMNS))
    except DAMAGE as error:
        # Sheets are parsed row by row: damage inside one shows only here.
        raise StudyError(f"{directory / SHEET_FILE}: the workbook is damaged ({error}).") from error
    finally:
        workbook.close()
    if not faults:
        raise StudyError(f"{directory / SHEET_FILE}: the sheet 'faults' has no rows.")
    return count_faults(faults, how_to)


def fold_rows(rows: Iterable[Sequence[Any]]) -> list[Fault]:
    """Fold the rows below the header; a row without a link takes the type of the issue above."""
    faults: list[Fault] = []
    issue_type: str | None = None
    for number, (kind, link, specific, stage, inner, leaf, fix) in enumerate(rows, start=2):
        place = f"{SHEET_FILE}, sheet 'faults', row {number}"
        if link:
            issue_type = kind
        elif not faults:
            raise StudyError(f"{place}: no link, and no issue above to belong to.")
        if specific not in (0, 1):
            raise StudyError(f"{place}: distributed-specific is {specific!r}, expected 0 or 1.")
        try:
            symptom, fixes = fold_symptom(stage, inner, leaf), fold_fixes(fix)
        except UnknownLabelError as error:
            raise StudyError(f"{place}: {error}. Add it to phalanx.study.labels.") from error
        framework, source = fold_framework(issue_type), fold_source(issue_type)
        faults.append(Fault(symptom, framework, bool(specific), normalise(fix), fixes, source, not link, number))
    return faults


def count_faults(faults: Sequence[Fault], how_to_questions: int) -> Figures:
    """Count folded faults. All 30 symptoms and all fix patterns are present, also where the count is 0."""
    return Figures(
        faults=len(faults),
        how_to_questions=how_to_questions,
        distributed_specific=sum(fault.distributed_specific for fault in faults),
        cured_in_configuration=sum(fault.cured_in_configuration for fault in faults),
        by_framework=Counter(fault.framework for fault in faults),
        symptoms={symptom: _count_symptom(symptom, faults) for symptom in SYMPTOMS},
        fixes={pattern: _count_fix(pattern, faults) for pattern in FIX_PATTERNS},
    )


def _count_symptom(symptom: str, faults: Sequence[Fault]) -> SymptomFigures:
    mine = [fault for fault in faults if fault.symptom == symptom]
    by_framework = {}
    for framework in {fault.framework for fault in mine}:
        fixes = Counter(fault.fix for fault in mine if fault.framework == framework)
        by_framework[framework] = FrameworkFigures(fixes.total(), fixes)
    return SymptomFigures(
        stage=STAGES[symptom.partition(".")[0]],
        faults=len(mine),
        distributed_specific=sum(fault.distributed_specific for fault in mine),
        fixes=Counter(fault.fix for fault in mine),
        # Counter keeps the sheet's order among equal counts, as the study's own table does.
        top_labels=tuple(Counter(fault.label for fault in mine).most_common(TOP_LABELS)),
        by_framework=by_framework,
    )


def _count_fix(pattern: str, faults: Sequence[Fault]) -> FixFigures:
    frameworks = Counter(fault.framework for fault in faults if fault.fix == pattern)
    return FixFigures(frameworks.total(), frameworks)


def render_figures(figures: Figures) -> str:
    """Return the text of the shipped file: the same figures always give the same bytes."""
    document = {
        "schema": SCHEMA,
        "source": _SOURCE,
        "totals": {
            "issues": figures.issues,
            "faults": figures.faults,
            "how_to_questions": figures.how_to_questions,
            "distributed_specific": figures.distributed_specific,
            "symptoms": len(figures.symptoms),
            "mixed_symptoms": figures.mixed_symptoms,
            "cured_in_configuration": figures.cured_in_configuration,
            "by_framework": dict(figures.by_framework),
        },
        "configuration_share": round(figures.configuration_share, 3),
        "configuration_patterns": sorted(CONFIGURATION_PATTERNS),
        "symptoms": {name: _describe_symptom(symptom) for name, symptom in figures.symptoms.items()},
        "fixes": {
            name: {"count": fix.count, "by_framework": dict(fix.by_framework)} for name, fix in figures.fixes.items()
        },
    }
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _describe_symptom(symptom: SymptomFigures) -> dict[str, Any]:
    return {
        "stage": symptom.stage,
        "faults": symptom.faults,
        "distributed_specific": symptom.distributed_specific,
        "fixes": dict(symptom.fixes),
        "top_labels": [{"label": label, "count": count} for label, count in symptom.top_labels],
        "by_framework": {
            name: {"faults": framework.faults, "fixes": dict(framework.fixes)}
            for name, framework in symptom.by_framework.items()
        },
    }
