"""The raters' five rounds: two independent labellings of the same issues, paired by link."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.study.errors import StudyError
from phalanx.study.reproduce.kappa import Agreement, agree
from phalanx.study.reproduce.spellings import FAULT, UNRATED, Rating, fold_rating
from phalanx.study.sheets import DAMAGE, open_workbook, read_numbered_rows

_COLUMNS = ("Link", "Issue Type", "How-to topic", "How-to sub-topic", "Distributed-specified", "Stage", "Type", "Leaf Category", "Fix Pattern")  # fmt: skip
_RATERS = ("label1", "label2")

FOLDED, WRITTEN = "folded", "as written"
# What is compared, in which reading. Questions have no symptom: in all readings they are one label beside the symptoms.
QUESTIONS: tuple[tuple[str, str, Callable[[Rating], str]], ...] = (
    ("type", FOLDED, lambda rating: rating.kind),
    ("symptom", FOLDED, lambda rating: rating.symptom),
    ("symptom", WRITTEN, lambda rating: rating.written_symptom),
    ("fix pattern", FOLDED, lambda rating: rating.fix),
    ("fix pattern", WRITTEN, lambda rating: rating.written_fix),
)


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the pairs of ratings of issues that both raters labelled, and what could not be paired."""

    number: int
    pairs: tuple[tuple[Rating, Rating], ...]
    rows: int
    continued: int  # further faults of an issue: their order is each rater's own, so they are not paired
    repeated: int  # an issue that stands twice in one sheet; the first counts
    unpaired: int  # in one rater's sheet only, or left empty by one


@dataclass(frozen=True, slots=True)
class RoundAgreement:
    """The agreement on one question in one round; `round` is None for all rounds together."""

    round: int | None
    question: str
    reading: str
    agreement: Agreement


def read_rounds(directory: Path) -> list[Round]:
    """Read every `reliability-roundN.xlsx` of the folder."""
    files = {}
    for path in directory.glob("reliability-round*.xlsx"):
        match = re.fullmatch(r"reliability-round(\d+)\.xlsx", path.name)
        if match:
            files[int(match[1])] = path
    if not files:
        raise StudyError(f"{directory}: no reliability-round*.xlsx. Give the folder that holds the authors' files.")
    return [_read_round(number, files[number]) for number in sorted(files)]


def _read_round(number: int, path: Path) -> Round:
    workbook = open_workbook(path)
    try:
        sheets = [_read_ratings(workbook, sheet, path.name) for sheet in _RATERS]
    except DAMAGE as error:
        raise StudyError(f"{path}: the workbook is damaged ({error}).") from error
    finally:
        workbook.close()
    first, second = (sheet.ratings for sheet in sheets)
    pairs = [(first[link], second[link]) for link in first if link in second]
    rated = [pair for pair in pairs if UNRATED not in (pair[0].kind, pair[1].kind)]
    alone = len(first.keys() ^ second.keys())
    return Round(
        number=number,
        pairs=tuple(rated),
        rows=sum(sheet.rows for sheet in sheets),
        continued=sum(sheet.continued for sheet in sheets),
        repeated=sum(sheet.repeated for sheet in sheets),
        unpaired=alone + len(pairs) - len(rated),
    )


@dataclass(slots=True)
class _Sheet:
    ratings: dict[str, Rating]
    rows: int = 0
    continued: int = 0
    repeated: int = 0


def _read_ratings(workbook: Any, name: str, file: str) -> _Sheet:
    sheet = _Sheet({})
    for _, (link, kind, topic, _, specific, stage, inner, leaf, fix) in read_numbered_rows(
        workbook, name, _COLUMNS, file
    ):
        sheet.rows += 1
        if not link:
            sheet.continued += 1
        elif (key := str(link).strip()) in sheet.ratings:
            sheet.repeated += 1
        else:
            sheet.ratings[key] = fold_rating(kind, topic, specific, stage, inner, leaf, fix)
    return sheet


def agreements(rounds: list[Round]) -> list[RoundAgreement]:
    """The agreement on every question, round by round and over all of them."""
    found = []
    for question, reading, label in QUESTIONS:
        together: list[tuple[str, str]] = []
        for one in rounds:
            pairs = [(label(first), label(second)) for first, second in one.pairs]
            together += pairs
            result = agree(pairs)
            if result is not None:
                found.append(RoundAgreement(one.number, question, reading, result))
        result = agree(together)
        if result is not None:
            found.append(RoundAgreement(None, question, reading, result))
    return found


def count_oddities(rounds: list[Round]) -> dict[str, int]:
    """What had to be put straight in the raters' sheets, counted."""
    ratings = [rating for one in rounds for pair in one.pairs for rating in pair]
    return {
        "rows read": sum(one.rows for one in rounds),
        "issues rated by both": sum(len(one.pairs) for one in rounds),
        "further faults of an issue, not paired": sum(one.continued for one in rounds),
        "issues that stand twice in a sheet (the first counts)": sum(one.repeated for one in rounds),
        "issues that only one rater labelled": sum(one.unpaired for one in rounds),
        "ratings moved one column to the right": sum(rating.shifted for rating in ratings),
        "ratings with a pending symptom": sum(
            rating.kind == FAULT and "pending" in rating.symptom for rating in ratings
        ),
        "ratings with a leaf of no category": sum(bool(rating.unknown) for rating in ratings),
    }
