"""Jobs of the benchmark's simulator, faults that no rule was written from: who is accused, and that nobody else is."""

from __future__ import annotations

import pytest

from tests.made_traces import bench_module

SITUATIONS = bench_module("situations").SITUATIONS


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.__name__)
def test_a_situation(situation: object) -> None:
    judge = bench_module("trace_situations").judge
    for seed in (1, 2):
        right, innocents, report, truth = judge(situation, seed)
        assert right, (seed, truth, report.verdict)
        assert innocents == 0, (seed, truth, report.findings)
