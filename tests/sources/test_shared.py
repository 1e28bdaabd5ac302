"""Observations survive their journey, and nothing else is let in."""

from __future__ import annotations

import json
from collections import Counter, deque

import pytest

from phalanx.model import Event, EventKind, Frame
from phalanx.sources.metrics import Metrics
from phalanx.sources.observations import Match, Observations
from phalanx.sources.shared import from_json, settled, to_json
from phalanx.sources.survey import FileSurvey, RankSurvey


def test_what_was_read_comes_back() -> None:
    event = Event(EventKind.LINE, "x", "a.log", 7, 2, frames=(Frame("t.py", 3, "f"),), data={"sets": ((1, 2), {3})})
    event = Event(
        **{name: getattr(event, name) for name in event.__slots__}
        | {"context": lambda: ((6, "before"),), "true_line": lambda line: line + 100}
    )
    metrics = Metrics()
    metrics.take(3, (0, 3), "step 3 loss 0.25")
    survey = FileSurvey(
        "a.log", 2, ranks={None: RankSurvey(metrics=metrics), 2: RankSurvey(lines=3)}, signs=Counter(torch=4)
    )
    seen = Observations([event], [Match(("HNG001", 0), event, {"op": "ALLREDUCE"})], [survey])
    back = from_json(json.loads(json.dumps(to_json(settled(seen)))))
    assert back.events[0].context() == ((6, "before"),)
    assert back.events[0].true_line(7) == 107
    assert back.events[0].data == event.data
    assert back.matches[0].key == ("HNG001", 0)
    assert back.files[0].ranks[None].metrics.of("loss")[0].value == 0.25
    assert back.files[0].signs == Counter(torch=4)
    assert from_json(to_json(deque([1, 2], maxlen=3))).maxlen == 3


@pytest.mark.parametrize(
    "data", [{"~": "Popen", "v": []}, {}, {"~": "Event", "v": {}}, {"~": "tuple"}, {"~": "Event", "v": {"kind": 1}}]
)
def test_other_values_are_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"unknown kind|damaged"):
        from_json(data)
