"""Stall reports and time-outs."""

from __future__ import annotations

import pytest

from phalanx.model import EventKind

from .test_tracebacks import events


@pytest.mark.parametrize(
    ("text", "kind", "data"),
    [
        ("RuntimeError: [x.cc:78] Timed out waiting 10000ms for recv operation to complete\n", EventKind.TIMEOUT, {"op": "recv", "waited_s": 10.0}),
        ("Stalled ops:opt/x [missing ranks: 0, 3]\n", EventKind.STALL, {"missing": (0, 3)}),
        ("Missing ranks:\n2: [allreduce.a, allreduce.b]\n5: [allreduce.a]\n", EventKind.STALL, {"missing": (2, 5), "sets": ((2,), (2, 5))}),
        ("[Rank 0]: Ranks 2, 3 failed to pass monitoredBarrier in 30000 ms\n", EventKind.STALL, {"missing": (2, 3)}),
    ],
)  # fmt: skip
def test_wait(text: str, kind: EventKind, data: dict[str, object]) -> None:
    (event,) = [event for event in events(text) if event.kind in (EventKind.STALL, EventKind.TIMEOUT)]
    assert event.kind is kind
    assert dict(event.data) == data
