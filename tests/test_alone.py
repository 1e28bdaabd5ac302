"""The second chance of tests that failed beside others: for few, alone, and not for one that fails again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.alone import failed_tests, main, run_alone

TESTS = """
def test_passes():
    pass

def test_fails():
    assert 1 == 2
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS)
    return tmp_path / "lastfailed"


def test_one_that_passes_alone_is_good_and_named(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file.write_text(json.dumps({"test_some.py::test_passes": True}))
    assert run_alone(failed_tests(file)) == 0
    assert "passed alone, and failed beside others:\n  test_some.py::test_passes" in capfd.readouterr().err


def test_one_that_fails_again_has_failed(file: Path) -> None:
    assert run_alone(["test_some.py::test_fails"]) == 1
    assert run_alone(["test_some.py::test_passes", "test_some.py::test_fails"]) == 1


def test_many_are_not_asked_again(file: Path) -> None:
    assert run_alone(["test_some.py::test_passes"] * 4) == 1


def test_pytest_that_noted_nothing_has_failed(file: Path) -> None:
    assert failed_tests(file) == []
    file.write_text("{")
    assert run_alone(failed_tests(file)) == 1


def test_an_interrupted_run_is_not_mended(file: Path) -> None:
    assert main(pytest.ExitCode.INTERRUPTED) == pytest.ExitCode.INTERRUPTED
