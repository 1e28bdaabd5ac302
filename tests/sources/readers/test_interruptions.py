"""When a job was ended from outside."""

from __future__ import annotations

import pytest

from phalanx.sources.readers.interruptions import SOURCE

from .test_tracebacks import events


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("W1116 22:36:24.8 20982 torch/distributed/elastic/agent/server/api.py:753] Received 15 death signal, shutting down workers\n", True),
        ("slurmstepd: error: *** JOB 88 ON node07 CANCELLED AT 2026-11-16T21:04:11 DUE TO TIME LIMIT ***\n", True),
        ("Received 15 death signals in the last epoch, shutting down nothing\n", False),
        ("the meeting was CANCELLED AT noon\n", False),
    ],
)  # fmt: skip
def test_the_moment_of_the_end(text: str, is_told: bool) -> None:
    found = [event for event in events(text) if event.source == SOURCE]
    assert [event.time is not None for event in found] == [True] * is_told
