"""All of the authors' files read at once: faults, questions, rounds of rating, candidates."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.study.errors import StudyError
from phalanx.study.figures import FAULT_COLUMNS, HOW_TO_COLUMNS, SHEET_FILE, Fault, Figures, count_faults, fold_rows
from phalanx.study.labels import fold_framework, fold_source, normalise
from phalanx.study.reproduce.rounds import Round, RoundAgreement, agreements, count_oddities, read_rounds
from phalanx.study.reproduce.spellings import fold_topic
from phalanx.study.sheets import DAMAGE, open_workbook, read_rows


@dataclass(frozen=True, slots=True)
class Question:
    """One how-to question of the sheet, folded."""

    topic: str
    sub_topic: str
    framework: str
    source: str
    continued: bool


@dataclass(frozen=True, slots=True)
class Study:
    """The study as read; figures and tables are computed from it."""

    faults: tuple[Fault, ...]
    questions: tuple[Question, ...]
    rounds: tuple[Round, ...]
    spellings: Mapping[tuple[str, str], int]  # (column, spelling as written but for spaces) -> times seen
    candidates: Mapping[str, int]
    issues_among_candidates: int
    distinct_issues: int
    both_kinds: int  # issues that stand among the faults and among the questions

    @property
    def figures(self) -> Figures:
        return count_faults(self.faults, len(self.questions))

    @property
    def agreements(self) -> list[RoundAgreement]:
        return agreements(list(self.rounds))

    @property
    def oddities(self) -> dict[str, int]:
        """How many rows and issues needed a decision, over all files."""
        return {
            "fault rows that continue the issue above": sum(fault.continued for fault in self.faults),
            "question rows that continue the issue above": sum(question.continued for question in self.questions),
            "distinct issues": self.distinct_issues,
            "issues with a fault and a question": self.both_kinds,
            **count_oddities(list(self.rounds)),
        }


def read_study(directory: Path) -> Study:
    """Read the folder of the authors' files."""
    if not directory.is_dir():
        raise StudyError(f"{directory}: no such folder. Give the folder that holds the authors' {SHEET_FILE}.")
    workbook = open_workbook(directory / SHEET_FILE)
    try:
        fault_rows = list(read_rows(workbook, "faults", FAULT_COLUMNS))
        question_rows = list(read_rows(workbook, "how-to questions", HOW_TO_COLUMNS))
    except DAMAGE as error:
        raise StudyError(f"{directory / SHEET_FILE}: the workbook is damaged ({error}).") from error
    finally:
        workbook.close()
    faults = fold_rows(fault_rows)
    if not faults:
        raise StudyError(f"{directory / SHEET_FILE}: the sheet 'faults' has no rows.")
    fault_links = {_link(row[1]) for row in fault_rows if row[1]}
    question_links = {_link(row[1]) for row in question_rows if row[1]}
    candidates, links = _read_candidates(directory)
    return Study(
        faults=tuple(faults),
        questions=tuple(_fold_questions(question_rows)),
        rounds=tuple(read_rounds(directory)),
        spellings=_count_spellings(fault_rows, question_rows),
        candidates=candidates,
        issues_among_candidates=len((fault_links | question_links) & links),
        distinct_issues=len(fault_links | question_links),
        both_kinds=len(fault_links & question_links),
    )


def _fold_questions(rows: list[tuple[Any, ...]]) -> list[Question]:
    questions: list[Question] = []
    kind: str | None = None
    for type_, link, topic, sub_topic in rows:
        if link:
            kind = type_
        source = fold_source(kind)
        questions.append(Question(fold_topic(topic), fold_topic(sub_topic), fold_framework(kind), source, not link))
    return questions


def _count_spellings(faults: list[tuple[Any, ...]], questions: list[tuple[Any, ...]]) -> dict[tuple[str, str], int]:
    seen: Counter[tuple[str, str]] = Counter()
    for _, _, _, stage, inner, leaf, fix in faults:
        for column, cell in (("stage", stage), ("inner category", inner), ("leaf", leaf), ("fix pattern", fix)):
            if cell is not None:
                seen[column, str(cell)] += 1
    for _, _, topic, sub_topic in questions:
        for column, cell in (("how-to topic", topic), ("how-to sub-topic", sub_topic)):
            if cell is not None:
                seen[column, str(cell)] += 1
    return dict(seen)


def _read_candidates(directory: Path) -> tuple[dict[str, int], set[str]]:
    """How many posts the authors' searches found, by file; undecodable bytes are replaced, never fatal."""
    counts: dict[str, int] = {}
    links: set[str] = set()
    for path in sorted(directory.glob("candidates-*")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        found = {_link(line.split(",")[0]) for line in lines if "://" in line}
        counts[path.stem.removeprefix("candidates-")] = len(found)
        links |= found
    return counts, links


def _link(text: object) -> str:
    """A link without what does not tell issues apart: fragments, a question's title, a trailing slash."""
    bare = normalise(str(text)).split("#")[0].split("?")[0].rstrip("/")
    head, sep, tail = bare.partition("/questions/")
    return f"{head}{sep}{tail.split('/')[0]}" if sep else bare
