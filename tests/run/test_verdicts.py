"""One verdict at a time, kept in the bundle; nobody is left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phalanx.run.bundle import BundleWriter
from phalanx.run.verdicts import Verdicts


class Made:
    """A diagnosis that answers when it is told to."""

    class Process:
        pid = 7

    process = Process

    def __init__(self, bundle: Path) -> None:
        self.is_done = False
        self.was = "prepared"
        MADE.append(self)

    def ask(self) -> Made:
        self.was = "asked"
        return self

    def result(self) -> dict[str, object] | None:
        return {"number": MADE.index(self)}

    def abandon(self) -> None:
        self.was = "abandoned"


MADE: list[Made] = []


@pytest.fixture
def verdicts(tmp_path: Path) -> Verdicts:
    MADE.clear()
    return Verdicts(BundleWriter(tmp_path, lambda text: None), Made)  # type: ignore[arg-type]


def test_the_prepared_one_is_asked(verdicts: Verdicts) -> None:
    assert verdicts.prepare() == 7
    assert verdicts.prepare() is None
    verdicts.ask()
    verdicts.ask()
    assert [one.was for one in MADE] == ["asked"]


def test_a_report_is_taken_once_it_is_there_and_kept(verdicts: Verdicts, tmp_path: Path) -> None:
    verdicts.ask()
    assert verdicts.poll() is None
    MADE[0].is_done = True
    assert verdicts.poll() == {"number": 0} == verdicts.report
    assert json.loads((tmp_path / "report.json").read_text()) == {"number": 0}
    assert not verdicts.is_pending


def test_the_last_one_is_made_of_the_whole_bundle(verdicts: Verdicts) -> None:
    verdicts.ask()
    assert verdicts.final() == {"number": 1}
    assert MADE[0].was == "abandoned"


def test_close_leaves_no_process(verdicts: Verdicts) -> None:
    verdicts.ask()
    verdicts.prepare()
    verdicts.close()
    assert [one.was for one in MADE] == ["abandoned", "abandoned"]
