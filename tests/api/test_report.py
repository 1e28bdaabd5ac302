"""The report as people use it from Python."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest

from phalanx.api.report import Report
from phalanx.api.verbs import diagnose
from tests.model.test_report_json import CRASH


@pytest.fixture
def report(tmp_path: Path) -> Report:
    log = tmp_path / "job.log"
    log.write_text(CRASH)
    return diagnose(log)


def test_print_says_who_did_what_without_colours(report: Report) -> None:
    assert not report.ok
    assert "Rank 1 raised KeyError: 'labels'" in str(report)
    assert "\x1b" not in str(report)


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(report: Report) -> None:
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "KeyError" in shown
    assert "<script" not in shown.partition(">")[2], "the page is escaped inside the attribute"


def test_the_table_has_a_row_for_each_rank(report: Report) -> None:
    table = report.ranks()
    assert table["rank"].to_list() == [0, 1]
    assert table.filter(polars.col("part") == "culprit")["rank"].to_list() == [1]
    assert table.filter(polars.col("rank") == 0)["last_step"].to_list() == [10.0]


def test_a_document_comes_back_as_the_same_report(report: Report) -> None:
    again = Report.from_json(report.to_json())
    assert str(again) == str(report)
    assert again.ranks().equals(report.ranks())


def test_a_job_that_does_not_hang_says_its_sentence(report: Report) -> None:
    document = {**report.to_json(), "findings": [], "verdict": None, "attached": {"said": "It is not hung."}}
    read = Report.from_json(document)
    assert read.ok
    assert str(read) == "It is not hung."
