"""The study from the authors' own files, and from small files with every oddity in them."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import polars
import pytest

from phalanx.study.classify.train import RATERS
from phalanx.study.errors import StudyError
from phalanx.study.figures import SHIPPED_FILE
from phalanx.study.reproduce import Study, read_study, reproduce
from phalanx.study.reproduce.tables import build_tables
from phalanx.study.table import Table

from ..test_figures import SETUP, write_workbook

RATER_HEADER = ("Link", "Issue Type ", "How-to topic", "How-to sub-topic", "Distributed-specified", "Stage", "Type", "Leaf Category", "Fix Pattern")  # fmt: skip


@pytest.fixture(scope="module")
def read(study: Path) -> Study:
    return read_study(study)


def tables_of(study: Study) -> dict[str, Table]:
    return {table.name: table for table in build_tables(study)}


def write_round(directory: Path, number: int, first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="writing a sheet needs the extra `study`")
    workbook = openpyxl.Workbook()
    workbook.active.title = "label1"
    workbook.create_sheet("label2")
    for name, rows in (("label1", first), ("label2", second)):
        for row in (RATER_HEADER, *rows):
            workbook[name].append(row)
    workbook.save(directory / f"reliability-round{number}.xlsx")


# The authors' files


def test_the_totals_are_those_of_the_paper(read: Study) -> None:
    totals = {row[0]: row[1] for row in tables_of(read)["totals"].rows}
    assert (totals["issues"], totals["faults"], totals["how-to questions"]) == (1131, 637, 494)
    assert totals["faults specific to distributed training"] == 569
    assert totals["symptoms with faults of both kinds"] == 17
    assert f"{read.figures.configuration_share:.1%}" == "51.6%"


@pytest.mark.parametrize(
    ("question", "reading", "kappas"),
    [
        ("type", "folded", [0.87, 0.98, 0.94, 0.96, 1.0]),
        ("symptom", "as written", [0.72, 0.88, 0.88, 0.71, 0.95]),
        ("symptom", "folded", [0.7, 0.9, 0.88, 0.92, 0.95]),
        ("fix pattern", "as written", [0.66, 0.75, 0.85, 0.64, 0.96]),
        ("fix pattern", "folded", [0.66, 0.78, 0.85, 0.85, 0.96]),
    ],
)
def test_the_raters_agreement_by_round(read: Study, question: str, reading: str, kappas: list[float]) -> None:
    found = [one for one in read.agreements if (one.question, one.reading) == (question, reading)]
    assert [round(one.agreement.kappa, 2) for one in found if one.round] == kappas
    assert [one.agreement.pairs for one in found] == [108, 108, 108, 108, 99, 531]
    for one in found:
        assert one.agreement.low < one.agreement.kappa <= one.agreement.high <= 1
    together = found[-1].agreement
    assert together.high - together.low < min(one.agreement.high - one.agreement.low for one in found[:-1])


def test_the_raters_kappa_that_the_text_model_is_held_against(read: Study) -> None:
    names = {"type": "type", "symptom": "symptom", "fix pattern": "fix"}
    together = {
        names[one.question]: round(one.agreement.kappa, 2)
        for one in read.agreements
        if one.round is None and one.reading == "folded"
    }
    assert together == RATERS


def test_every_cross_table_adds_up_to_the_faults(read: Study) -> None:
    tables = tables_of(read)
    for name in ("symptoms-by-framework", "symptoms-by-source"):
        assert tables[name].rows[-1][-1] == 637
        assert sum(int(str(row[-1])) for row in tables[name].rows[:-1]) == 637
    assert sum(int(str(row[2])) for row in tables["stages"].rows) == 637
    assert sum(int(str(row[2])) for row in tables["fixes"].rows) == 637
    assert sum(int(str(row[2])) for row in tables["fixes-by-symptom"].rows) == 637
    assert sum(int(str(row[2])) for row in tables["how-to-topics"].rows if row[1] == "") == 494


def test_what_is_ambiguous_is_listed_with_its_count_and_its_rows(read: Study) -> None:
    rows = {row[1]: row for row in tables_of(read)["ambiguous"].rows}
    assert rows["restart servers"][2:4] == ("other", "kill-stale-processes")
    several = rows["fix dependency version & fix memory/core setting"]
    assert several[4] == 3
    assert len(str(several[5]).split(", ")) == 3, "the rows of the sheet are named"
    assert read.oddities["fault rows that continue the issue above"] == 40
    assert read.oddities["ratings moved one column to the right"] == 20


def test_everything_is_written_twice_alike_and_the_figures_are_the_shipped_ones(study: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need the extra `study`")
    first, second = tmp_path / "a", tmp_path / "b"
    written = reproduce(study, first)
    reproduce(study, second)
    assert written.same_figures
    assert (first / "figures.json").read_bytes() == SHIPPED_FILE.read_bytes()
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert len(names) == written.files
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    assert {name.suffix for name in names} == {".md", ".csv", ".parquet", ".svg", ".png", ".html", ".json"}
    rows = list(csv.DictReader(io.StringIO((first / "tables/symptoms.csv").read_text())))
    frame = polars.read_parquet(first / "tables/symptoms.parquet")
    assert [int(row["faults"]) for row in rows] == frame["faults"].to_list()
    assert frame["faults"].sum() == 637
    page = (first / "study.html").read_text()
    assert page.count("data:image/svg+xml") == 5
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", page)


def test_no_row_of_the_data_is_in_what_is_written(study: Path, tmp_path: Path) -> None:
    reproduce(study, tmp_path, plots=False)
    files = list(tmp_path.rglob("*.csv"))
    assert files
    assert [path for path in files if "://" in path.read_text()] == []


# Files made here


def test_raters_are_paired_by_link_and_what_cannot_be_is_counted(tmp_path: Path) -> None:
    write_workbook(
        tmp_path, [("SO-pytorch", "a", 1, *SETUP, "fix network setting")], [("SO-keras", "c", "Model ", None)]
    )
    fault = ("fault", None, None, 1, "communication setup", None, "setup failure", "fix network setting")
    question = ("how-to question", "model", None, None, None, None, None, None)
    first = [("a", *fault), (None, *fault), ("b", *question), ("b", *fault), ("c", *question), ("only", *fault)]
    second = [("c", *question), ("a", *fault), ("b", *fault), ("empty", *[None] * 8)]
    write_round(tmp_path, 1, first, second)
    study = read_study(tmp_path)
    (one,) = study.rounds
    assert [(left.kind, right.kind) for left, right in one.pairs] == [("fault", "fault"), ("how-to question", "fault"), ("how-to question",) * 2]  # fmt: skip
    assert (one.continued, one.repeated, one.unpaired) == (1, 1, 2)


def test_a_folder_without_rounds_says_what_is_missing(tmp_path: Path) -> None:
    write_workbook(tmp_path, [("SO-pytorch", "a", 1, *SETUP, "fix network setting")])
    with pytest.raises(StudyError, match=r"no reliability-round\*\.xlsx"):
        read_study(tmp_path)
    with pytest.raises(StudyError, match="no such folder"):
        read_study(tmp_path / "nothing")


def test_a_bar_in_a_cell_does_not_end_the_cell() -> None:
    table = Table("t", "T", ("a|b", "n"), (("x|y\nz", 1), (None, 2)))
    assert table.markdown().splitlines()[2:] == ["| a\\|b | n |", "| --- | ---: |", "| x\\|y z | 1 |", "|  | 2 |"]
    with pytest.raises(ValueError, match="1 cells under 2 columns"):
        Table("t", "T", ("a", "b"), (("x",),))
