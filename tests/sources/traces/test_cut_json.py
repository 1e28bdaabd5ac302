"""JSON that breaks off is read up to its last whole element."""

from __future__ import annotations

import json

import pytest

from phalanx.sources.traces.cut_json import load_cut_json

EVENTS = [{"name": "a", "args": {"rank": 0}}, {"name": "b", "args": {"rank": 1}}, {"name": "c", "args": {"rank": 2}}]


def test_a_whole_file_is_not_cut() -> None:
    assert load_cut_json(json.dumps(EVENTS), "]") == (EVENTS, False)


@pytest.mark.parametrize("kept", range(1, 4))
def test_every_cut_keeps_the_elements_before_it(kept: int) -> None:
    whole = json.dumps(EVENTS)
    begin = len(json.dumps(EVENTS[:kept])) - 1  # behind the last brace of the kept ones
    end = len(json.dumps(EVENTS[: kept + 1])) - 2 if kept < len(EVENTS) else len(whole) - 1
    for length in range(begin, end):
        assert load_cut_json(whole[:length], "]") == (EVENTS[:kept], True)


def test_an_object_is_closed_as_its_form_wants() -> None:
    assert load_cut_json('{"traceEvents": [{"ph": "X"}, {"ph": "Y", "na', "]}") == (
        {"traceEvents": [{"ph": "X"}]},
        True,
    )


@pytest.mark.parametrize("text", ["", "no json", "[", "}" * 1000])
def test_what_holds_nothing_whole_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no whole element"):
        load_cut_json(text, "]")
