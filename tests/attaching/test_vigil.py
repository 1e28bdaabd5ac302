"""A vigil says once that a job hangs, and once that it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from phalanx.attaching.target import JobEndedError
from phalanx.attaching.vigil import Vigil


def keep(states: list[bool]) -> tuple[list[str], bool]:
    said: list[str] = []

    def looks() -> Iterator[Any]:
        for hangs in states:
            yield SimpleNamespace(hangs=hangs)
        raise JobEndedError("gone")

    look = looks()

    def next_look() -> Any:
        try:
            return next(look)
        except StopIteration:
            raise JobEndedError("gone") from None

    vigil = Vigil(next_look, lambda _: said.append("hung"), lambda _: said.append("on"), 1.0, lambda _: None)
    return said, vigil.keep()


def test_each_change_is_said_once() -> None:
    assert keep([False, True, True, False, False, True]) == (["hung", "on", "hung"], True)


def test_a_job_that_never_hangs() -> None:
    assert keep([False, False]) == ([], False)
