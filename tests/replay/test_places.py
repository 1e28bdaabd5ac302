"""The user's line is the innermost one of the user's own, however a call came to be made."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phalanx.replay.inside.phalanx_record import places
from phalanx.replay.inside.phalanx_record.places import users_line

HERE = str(Path(__file__).resolve().parent)
# Functions of a library: a call that is so many frames deep, and one that calls back.
SOURCE = """
def ask(deep, users_line, folder):
    return users_line(folder, "call") if deep == 0 else ask(deep - 1, users_line, folder)

def back(deep, act):
    return act() if deep == 0 else back(deep - 1, act)
"""


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(places, "_ways", {})
    names: dict[str, Any] = {}
    exec(compile(SOURCE, "x/site-packages/library.py", "exec"), names)
    return names


def here() -> str:
    return f"test_places.py:{sys._getframe(1).f_lineno}"


def test_ways_of_any_length_are_found_again_and_again(library: dict[str, Any]) -> None:
    ask: Callable[..., str] = library["ask"]
    for deep in (0, 5, 3, 9, 1, 7, 5, 0, 3, 9, 1, 7):  # more than are remembered
        for _ in range(2):
            assert ask(deep, users_line, HERE) == here()
            assert ask(deep, users_line, HERE) == here()
    assert len(places._ways["call"]) <= 4


def test_another_line_of_the_user_on_the_way_is_the_innermost(library: dict[str, Any]) -> None:
    ask, back = library["ask"], library["back"]
    assert ask(4, users_line, HERE) == here()

    def inner() -> tuple[str, str]:
        return ask(4, users_line, HERE), here()

    for deep in (0, 2, 4):
        found, expected = back(deep, inner)
        assert found == expected


def test_nothing_where_no_frame_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_ways", {})
    monkeypatch.setattr(places, "_is_users_own", lambda code: False)
    assert users_line(HERE, "call") == ""
    assert not places._ways
