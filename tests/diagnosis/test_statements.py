"""Ranks that state another world, model or amount of data than all others."""

from __future__ import annotations

import pytest

from ..conftest import Diagnose
from .test_verdicts import steps, trace

_LOST = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:42416."


def _job(openings: list[str]) -> dict[str, str | bytes]:
    return {
        f"rank{rank}.log": f"2026-11-16 10:00:0{rank} {opening}\n" + trace(60, "dist.all_reduce(x)", _LOST)
        for rank, opening in enumerate(openings)
    }


@pytest.mark.parametrize(
    ("openings", "culprits", "cause"),
    [
        ([f"RANK={r} WORLD_SIZE={2 if r == 1 else 3}" for r in range(3)], (1,), "world-size-differs"),
        ([f"rank {r}: {28 if r == 2 else 32} batches" for r in range(3)], (2,), "uneven-steps"),
        ([f"model has {4010 if r else 4020} parameters" for r in range(3)], (0,), "model-differs-between-ranks"),
    ],
)
def test_the_one_that_differs_is_named(
    diagnose: Diagnose, openings: list[str], culprits: tuple[int, ...], cause: str
) -> None:
    verdict = diagnose(_job(openings)).verdict
    assert verdict is not None
    assert (verdict.culprit_ranks, verdict.cause) == (culprits, cause)


@pytest.mark.parametrize(
    "openings",
    [
        [f"rank {r}: {100 + r} batches" for r in range(3)],  # all differ
        [f"rank {r} on node {r // 2} with pid {1000 + r}" for r in range(3)],  # where it runs says nothing
        [f"rank {r}: {30 + r} batches" for r in range(2)],  # either may be right
    ],
)
def test_what_says_nothing_accuses_nobody(diagnose: Diagnose, openings: list[str]) -> None:
    verdict = diagnose(_job(openings)).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == ()


def test_a_healthy_job_may_differ(diagnose: Diagnose) -> None:
    logs: dict[str, str | bytes] = {f"rank{r}.log": f"rank {r}: {334 - r // 2} samples\n" + steps(20) for r in range(3)}
    assert diagnose(logs).verdict is None
