"""Evidence made by hand: two or more ranks with a small model, and what each of them does at each step."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from phalanx.verification.evidence import Evidence, RankEvidence

NAMES = ("fc1.weight", "fc2.weight")
Vector = list[float]  # an invented tensor of three numbers; sketches of it are its first two and its norm


def sketch(values: Sequence[float]) -> list[float]:
    return [values[0], values[1], sum(one * one for one in values) ** 0.5]


def vector(*key: Any) -> Vector:
    source = random.Random(repr(key))
    return [source.uniform(-1, 1) for _ in range(3)]


def plus(one: Vector, two: Vector, times: float = 1.0) -> Vector:
    return [a + times * b for a, b in zip(one, two, strict=True)]


def mean(vectors: Sequence[Vector], factor: float = 1.0) -> Vector:
    return [factor * sum(column) / len(vectors) for column in zip(*vectors, strict=True)]


class Job:
    """Ranks that train together by SGD. What is not said is as in a healthy job."""

    def __init__(
        self,
        size: int = 2,
        steps: int = 4,
        *,
        wrapped: bool = True,
        has_group: bool = True,
        start: Callable[[int, int], Vector] = lambda rank, index: vector("w", index),
        own: Callable[[int, int, int], Vector] = lambda rank, step, index: vector("g", rank, step, index),
        reduce: Callable[[list[Vector], int, int], Vector] = lambda all_own, rank, index: mean(all_own),
        rate: Callable[[int, int], float] = lambda rank, step: 0.1,
        events: Callable[[int, int], list[list[Any]]] = lambda rank, step: [],
        more: Callable[[int], list[dict[str, Any]]] = lambda rank: [],
        fields: Callable[[int, int], Mapping[str, Any]] = lambda rank, step: {},
    ) -> None:
        weights = {rank: [start(rank, index) for index in range(len(NAMES))] for rank in range(size)}
        records: dict[int, list[dict[str, Any]]] = {rank: [{"k": "start", "rank": rank}] for rank in range(size)}
        for rank, written in records.items():
            written += [{"k": "init", "line": "train.py:3"}] if has_group else []
            written.append({"k": "model", "m": 0, "kind": "ddp" if wrapped else "module", "cls": "Net", "inside": None})
            if wrapped:
                members = list(range(size))
                written.append({"k": "wrapped", "m": 0, "line": "train.py:8", "members": members, "parameters": list(NAMES),
                                "ignored": [], "find_unused": False, "broadcast_buffers": True})  # fmt: skip
            held = [[0, name, [3], "float32", True, 0, None] for name in NAMES]
            written.append(
                {"k": "optimizer", "o": 0, "cls": "SGD", "line": "train.py:9", "parameters": held, "hyper": [{}]}
            )
            written += more(rank)
        for step in range(steps):
            brought = {rank: [own(rank, step, index) for index in range(len(NAMES))] for rank in range(size)}
            for rank in range(size):
                before = weights[rank]
                grads = [
                    reduce([brought[one][index] for one in range(size)], rank, index) for index in range(len(NAMES))
                ]
                after = [plus(w, g, -rate(rank, step)) for w, g in zip(before, grads, strict=True)]
                weights[rank] = after
                record = {
                    "k": "step", "step": step, "o": 0, "n": step, "lr": [rate(rank, step)], "line": "train.py:20",
                    "events": events(rank, step), "before": [sketch(one) for one in before],
                    "grad": [sketch(one) for one in grads], "own": [one[:2] for one in brought[rank]],
                    "times": [1, 1], "carried": [0, 0], "after": [sketch(one) for one in after], "state": [[], []],
                }  # fmt: skip
                records[rank].append(record | dict(fields(rank, step)))
        self.evidence = Evidence({rank: RankEvidence(rank, tuple(written)) for rank, written in records.items()}, size)


def call(what: str = "", op: str = "allreduce", **fields: Any) -> list[Any]:
    """A collective, as an event."""
    told = {"op": op, "red": "SUM", "group": "0", "n": 6, "what": what, "forward": False, "line": "train.py:18"}
    return ["call", told | fields]
