"""Tracebacks whose first letter was lost where somebody copied them."""

from __future__ import annotations

import pytest

from phalanx.diagnosis.match import patterns_of
from phalanx.model import Event, EventKind
from phalanx.sources import Collector, from_text

COLLECTOR = Collector(patterns_of(()), {})
REST = 'raceback (most recent call last):\n  File "/home/user/train.py", line 8, in main\n    step()\nValueError: no\n'


def exceptions(text: str) -> list[Event]:
    found = COLLECTOR.collect([from_text("job.log", text)]).events
    return [event for event in found if event.kind is EventKind.EXCEPTION]


@pytest.mark.parametrize("first", ["", "T"])
def test_one_exception_with_or_without_the_letter(first: str) -> None:
    (event,) = exceptions(first + REST)
    assert (event.text, event.frames[0].line) == ("ValueError: no", 8)


def test_with_a_progress_bar_behind_it() -> None:
    (event,) = exceptions(REST.replace("last):", "last):████▉| 7587/7588 [1:42:01<00:00,  1.26it/s]"))
    assert event.text == "ValueError: no"
