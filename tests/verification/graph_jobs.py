"""Evidence of a TensorFlow job, made by hand: one variable that is trained, and what each rank's loop takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phalanx.verification.evidence import Evidence, RankEvidence

Record = dict[str, Any]


def graph_job(
    *,
    start: Callable[[int], float] = lambda rank: 0.0,
    update: Callable[[int], float] = lambda rank: 1.0,
    sample: Callable[[int, int], list[int]] = lambda rank, call: [4 * call + rank, 4 * call + 2 + rank],
    dataset: bool = True,
    more: Callable[[int], list[Record]] = lambda rank: [],
    framework: str = "tensorflow",
    calls: int = 4,
) -> Evidence:
    """A healthy job of two ranks where nothing else is said."""
    ranks = {}
    for rank in range(2):
        records: list[Record] = [{"k": "strategy", "cls": "CollectiveAllReduceStrategy", "line": "train.py:3"}]
        for call in range(calls):
            value = start(rank) + call * update(rank)
            rows = sample(rank, call)
            if dataset:
                records.append({"k": "taken", "d": 0, "n": call, "rows": rows, "line": "train.py:20"})
            weights = {"names": ["dense/kernel", "seed"], "values": [[value, 2 * value, abs(value)], [1.0, 1.0, 1.0]]}
            records.append({"k": "weights", "n": call, "line": "train.py:21", **weights})
            records.append({"k": "called", "n": call, "rows": rows, "line": "train.py:21"})
        ranks[rank] = RankEvidence(rank, (*records, *more(rank)))
    return Evidence(ranks, 2, framework=framework)
