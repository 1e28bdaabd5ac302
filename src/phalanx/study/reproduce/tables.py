"""The study's tables: counted from what was read, one function a table."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from phalanx.knowledge import SYMPTOMS as TAXONOMY
from phalanx.study.figures import Fault
from phalanx.study.labels import (
    AMBIGUOUS_FIXES,
    CONFIGURATION_PATTERNS,
    FIX_PATTERNS,
    OTHER,
    STAGES,
    SYMPTOMS,
    fold_fixes,
)
from phalanx.study.reproduce.spellings import AMBIGUOUS_SPELLINGS, known_spellings
from phalanx.study.reproduce.study import Study
from phalanx.study.table import Cell, Table

FRAMEWORKS = ("horovod", "torch", "tensorflow", "keras")
SOURCES = ("GitHub", "Stack Overflow")
_SHARE = frozenset(["share", "specific share", "observed"])


def build_tables(study: Study) -> list[Table]:
    """All tables, in the order of the page."""
    return [
        _totals(study),
        _symptoms(study),
        _stages(study),
        _crossed(
            "symptoms-by-framework", "Symptoms by framework", study.faults, lambda fault: fault.framework, FRAMEWORKS
        ),
        _crossed("symptoms-by-source", "Symptoms by source", study.faults, lambda fault: fault.source, SOURCES),
        _fixes(study),
        _fixes_by_symptom(study),
        _configuration(study),
        _agreement(study),
        _topics(study),
        _topics_by_framework(study),
        _candidates(study),
        _spellings(study),
        _folding(),
        _ambiguous(study),
        _oddities(study),
    ]


def _totals(study: Study) -> Table:
    figures = study.figures
    rows: tuple[tuple[Cell, ...], ...] = (
        ("issues", figures.issues, None),
        ("faults", figures.faults, figures.faults / figures.issues),
        ("how-to questions", figures.how_to_questions, figures.how_to_questions / figures.issues),
        ("symptom categories", len(figures.symptoms), None),
        (
            "faults specific to distributed training",
            figures.distributed_specific,
            figures.distributed_specific / figures.faults,
        ),
        ("symptoms with faults of both kinds", figures.mixed_symptoms, figures.mixed_symptoms / len(figures.symptoms)),
        ("faults cured in the configuration", figures.cured_in_configuration, figures.configuration_share),
    )
    return Table("totals", "Totals", ("what", "count", "share"), rows, shares=_SHARE)


def _symptoms(study: Study) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, row in study.figures.symptoms.items():
        fix, count = max(row.fixes.items(), key=lambda item: (item[0] != OTHER, item[1]), default=("", 0))
        rows.append(
            (name, TAXONOMY[name].title, row.stage, row.faults, row.faults / len(study.faults), row.distributed_specific,
             row.distributed_specific / row.faults if row.faults else None, row.mixed, fix, count)
        )  # fmt: skip
    columns = (
        "symptom",
        "title",
        "stage",
        "faults",
        "share",
        "specific",
        "specific share",
        "both kinds",
        "most frequent fix",
        "cured",
    )
    note = "`specific`: specific to distributed training. `both kinds`: the symptom alone does not tell which it is."
    return Table("symptoms", "The 30 symptoms", columns, tuple(rows), note, _SHARE)


def _stages(study: Study) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for stage in dict.fromkeys(STAGES.values()):
        mine = [fault for fault in study.faults if STAGES[fault.symptom.partition(".")[0]] == stage]
        by_framework = Counter(fault.framework for fault in mine)
        specific = sum(fault.distributed_specific for fault in mine)
        categories = sum(STAGES[symptom.partition(".")[0]] == stage for symptom in SYMPTOMS)
        share = specific / len(mine) if mine else None
        rows.append((stage, categories, len(mine), len(mine) / len(study.faults), specific, share, *(by_framework[name] for name in FRAMEWORKS)))  # fmt: skip
    columns = ("stage", "symptoms", "faults", "share", "specific", "specific share", *FRAMEWORKS)
    return Table("stages", "Faults by stage", columns, tuple(rows), shares=_SHARE)


def _crossed(
    name: str, title: str, faults: Sequence[Fault], key: Callable[[Fault], str], known: Sequence[str]
) -> Table:
    found = [*known, *sorted({key(fault) for fault in faults} - set(known))]
    counts = Counter((fault.symptom, key(fault)) for fault in faults)
    rows: list[tuple[Cell, ...]] = []
    for symptom in SYMPTOMS:
        cells = [counts[symptom, column] for column in found]
        rows.append((symptom, *cells, sum(cells)))
    totals = [sum(counts[symptom, column] for symptom in SYMPTOMS) for column in found]
    rows.append(("all", *totals, sum(totals)))
    return Table(name, title, ("symptom", *found, "all"), tuple(rows))


def _fixes(study: Study) -> Table:
    ranked = sorted(FIX_PATTERNS, key=lambda pattern: (pattern == OTHER, -study.figures.fixes[pattern].count))
    rows: list[tuple[Cell, ...]] = []
    for pattern in ranked:
        fix = study.figures.fixes[pattern]
        by_framework = [fix.by_framework.get(name, 0) for name in FRAMEWORKS]
        rows.append(
            (pattern, pattern in CONFIGURATION_PATTERNS, fix.count, fix.count / len(study.faults), *by_framework)
        )
    columns = ("fix pattern", "configuration", "faults", "share", *FRAMEWORKS)
    note = "A cell of the sheet that names several patterns counts as the first one."
    return Table("fixes", "Fix patterns", columns, tuple(rows), note, _SHARE)


def _fixes_by_symptom(study: Study) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for symptom, row in study.figures.symptoms.items():
        ranked = sorted(row.fixes.items(), key=lambda item: (-item[1], item[0]))
        rows += [(symptom, pattern, count, count / row.faults) for pattern, count in ranked]
    return Table(
        "fixes-by-symptom",
        "What cured each symptom",
        ("symptom", "fix pattern", "faults", "share"),
        tuple(rows),
        shares=_SHARE,
    )


def _configuration(study: Study) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for framework in (*FRAMEWORKS, None):
        mine = [fault for fault in study.faults if framework in (None, fault.framework)]
        cured = sum(fault.cured_in_configuration for fault in mine)
        rows.append((framework or "all", len(mine), cured, cured / len(mine) if mine else None))
    note = "Communication configuration, versions, network, paths, builds, memory and cores, installations, hardware: not the training code."
    columns = ("framework", "faults", "cured in the configuration", "share")
    return Table("configuration", "Cured in the configuration", columns, tuple(rows), note, _SHARE)


def _agreement(study: Study) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in study.agreements:
        result = one.agreement
        name = "all" if one.round is None else str(one.round)
        rows.append(
            (name, one.question, one.reading, result.pairs, result.observed, result.kappa, result.low, result.high)
        )
    note = (
        "Two raters, each issue's first labels, questions as one label beside the symptoms; 95 % confidence intervals of kappa. `as written` compares the "
        "cells as they stand; `folded` compares ids after spellings are folded and a missing column is put right."
    )
    columns = ("round", "question", "reading", "issues", "observed", "kappa", "low", "high")
    return Table("agreement", "The raters' agreement", columns, tuple(rows), note, _SHARE)


def _topics(study: Study) -> Table:
    total = len(study.questions)
    rows: list[tuple[Cell, ...]] = []
    for topic, count in _ranked(question.topic for question in study.questions):
        rows.append((topic, "", count, count / total))
        inner = _ranked(
            question.sub_topic for question in study.questions if question.topic == topic and question.sub_topic
        )
        rows += [(topic, sub_topic, times, times / total) for sub_topic, times in inner]
    note = "A row without a sub-topic is the whole topic."
    return Table(
        "how-to-topics", "How-to questions", ("topic", "sub-topic", "questions", "share"), tuple(rows), note, _SHARE
    )


def _topics_by_framework(study: Study) -> Table:
    counts = Counter((question.topic, question.framework) for question in study.questions)
    rows: list[tuple[Cell, ...]] = []
    for topic, total in _ranked(question.topic for question in study.questions):
        rows.append((topic, *(counts[topic, name] for name in FRAMEWORKS), total))
    return Table("how-to-by-framework", "How-to topics by framework", ("topic", *FRAMEWORKS, "all"), tuple(rows))


def _candidates(study: Study) -> Table:
    rows = tuple((name, count) for name, count in study.candidates.items())
    note = f"Posts that the authors' searches found, before reading. {study.issues_among_candidates} of the {study.distinct_issues} distinct issues of the study are among them."
    return Table("candidates", "Candidates", ("search", "posts"), rows, note)


def _spellings(study: Study) -> Table:
    rows = tuple((column, spelling, times) for (column, spelling), times in sorted(study.spellings.items()))
    return Table("spellings-seen", "Spellings in the final sheet", ("column", "as spelled", "rows"), rows)


def _folding() -> Table:
    note = "Upper case and repeated spaces are folded before the table is asked."
    return Table("folding", "The folding table", ("what", "spelling", "means"), tuple(known_spellings()), note)


def _ambiguous(study: Study) -> Table:
    where: dict[str, list[str]] = {}
    for fault in study.faults:
        where.setdefault(fault.label, []).append(str(fault.row))

    def row(kind: str, label: str, chosen: str, other: str) -> tuple[Cell, ...]:
        places = where.get(label, [])
        return (kind, label, chosen, other, len(places), ", ".join(places))

    rows: list[tuple[Cell, ...]] = [
        row("fix pattern", case.label, case.chosen, case.alternative) for case in AMBIGUOUS_FIXES
    ]
    listed = {case.label for case in AMBIGUOUS_FIXES}
    for label in sorted(where):
        patterns = fold_fixes(label)
        if len(patterns) > 1 and label not in listed:
            rows.append(row("fix pattern, several named", label, patterns[0], ", ".join(patterns[1:])))
    rows += [(case.where, case.spelling, case.chosen, case.alternative, None, "") for case in AMBIGUOUS_SPELLINGS]
    columns = ("where", "spelling", "chosen", "also possible", "faults", "rows of the sheet")
    return Table("ambiguous", "What could be read otherwise", columns, tuple(rows))


def _oddities(study: Study) -> Table:
    return Table("oddities", "What was put straight", ("what", "count"), tuple(study.oddities.items()))


def _ranked(values: Iterable[str]) -> list[tuple[str, int]]:
    return sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
