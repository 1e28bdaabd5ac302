"""Whatever stands in lines, names and records: nothing is kept that a terminal acts on or that takes forever to read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phalanx.sources import find_inputs
from phalanx.sources.records import read_record
from phalanx.sources.text import clean, clean_text, shown_name, without_numbers

from ..conftest import Diagnose


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("rank3.log", "rank3.log"),
        ("\x1b[31mred\x1b[0m.log", "?red?.log"),
        ("a\nb.log", "a?b.log"),
        ("\u202egol.txt", "?gol.txt"),
        ("Größe.log", "Größe.log"),
        ("\udcff.log", "\ufffd.log"),  # a byte that is no text
    ],
)
def test_names_are_fit_to_be_shown(name: str, shown: str, tmp_path: Path) -> None:
    assert shown_name(name) == shown
    (tmp_path / name).write_text("hello\n")
    assert [one.name for one in find_inputs([str(tmp_path)])[0]] == [shown]


def test_endless_words_are_cut_and_long_ones_are_not() -> None:
    assert clean(b"step " + b"9" * 5000 + b" of " + b"8" * 400) == "step " + "9" * 100 + "… of " + "8" * 400
    assert clean_text("a\r\nb\rc \x1b[1md\x04") == "a\nb\nc d"


def test_a_rank_of_thousands_of_digits(diagnose: Diagnose) -> None:
    verdict = diagnose(
        "[rank" + "9" * 5000 + "]: Traceback (most recent call last):\nZorkError: the lamp is out\n"
    ).verdict
    assert verdict is not None


def test_a_step_of_hundreds_of_digits(diagnose: Diagnose) -> None:
    assert diagnose(f"step {'9' * 400} loss 0.5\nepoch {'8' * 400}/3\ntraining finished\n").verdict is None


def test_records_hold_no_codes_for_terminals() -> None:
    record = {"message": {"message": "ValueError: \x1b[31mbad\x04", "extraInfo": {"py_callstack": ""}}}
    events = read_record("error.json", json.dumps(record).encode(), 0)
    assert events is not None
    assert events[0].text == "ValueError: bad"


def test_a_record_of_a_rank_that_cannot_be() -> None:
    assert read_record("exit_codes.json", b'{"' + b"9" * 5000 + b'": 1}', None) is None


def test_messages_that_differ_in_numbers_only_are_alike() -> None:
    one, other = "rank 3 got 0x7f3a after 1.5e-3 s at 10:00:01", "rank 12 got 0xbeef after 22 s at 11:30:59"
    assert without_numbers(one) == without_numbers(other) == "rank # got # after # s at #"
