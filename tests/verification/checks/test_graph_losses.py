"""TensorFlow's losses and metrics."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.graph_losses import check
from phalanx.verification.evidence import Evidence
from tests.verification.graph_jobs import graph_job


def loss(kind: str, divisor: float | None, red: str = "SUM") -> Evidence:
    tape = {"k": "tape", "kind": kind, "divisor": divisor, "line": "train.py:12"}
    return graph_job(more=lambda rank: [tape, {"k": "reduced", "red": red, "what": "grad", "line": "train.py:13"}])


def test_a_mean_over_the_replicas_own_batch() -> None:
    for evidence in (loss("mean", 1.0), loss("sum", 2.0)):
        (found,) = check(evidence)
        assert (found.cause, found.line) == ("gradients-summed-not-averaged", "train.py:12")
        assert "2.00 × too large" in found.headline


def test_losses_that_are_divided_rightly_or_not_known() -> None:
    for evidence in (loss("mean", 2.0), loss("sum", 4.0), loss("", None), loss("mean", 1.0, "MEAN")):
        assert not list(check(evidence))


def evaluated(*kinds: str, shared: bool = False) -> Evidence:
    def more(rank: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for call in (4, 5, 6):
            rows = [100 + call + (0 if shared else 50 * rank)]
            found.append({"k": "taken", "d": 1, "n": call, "rows": rows, "line": "train.py:30"})
            still = {"names": ["dense/kernel", "seed"], "values": [[3.0, 6.0, 3.0], [1.0, 1.0, 1.0]]}
            found.append({"k": "weights", "n": call, "line": "train.py:31", **still})
            found += [{"k": kind, "n": call + 1, "line": "train.py:32"} for kind in kinds]
        return found

    return graph_job(more=more)


def test_each_worker_takes_its_own_results() -> None:
    (found,) = check(evaluated("local"))
    assert (found.cause, found.line) == ("metric-of-one-share", "train.py:32")
    for healthy in (evaluated("joined"), evaluated("local", "joined"), evaluated("local", shared=True)):
        assert not list(check(healthy))
