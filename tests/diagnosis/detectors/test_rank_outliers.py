"""Numbers of several ranks side by side: one rank that is not as the others are."""

from __future__ import annotations

import pytest

from ...conftest import Diagnose


def test_the_rank_whose_data_come_late_is_named(diagnose: Diagnose) -> None:
    def job(late: float) -> str:
        forms = ((step, rank, late if rank == 2 else 0.004) for step in range(8) for rank in range(3))
        return "".join(f"[r{rank}] step {step} loss 0.5 data_time={wait:.3f}s\n" for step, rank, wait in forms)

    verdict = diagnose({"job.log": job(0.4)}).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("perf.low-efficiency", (2,))
    assert diagnose({"job.log": job(0.006)}).verdict is None


def side_by_side(form: str, *columns: list[float]) -> str:
    """A line of each rank for each step."""
    steps = enumerate(zip(*columns, strict=True))
    return "".join(form.format(rank, step, value) + "\n" for step, row in steps for rank, value in enumerate(row))


FALLING = [2.0 - n / 10 for n in range(9)]


@pytest.mark.parametrize(
    ("log", "cause", "culprits"),
    [
        (side_by_side("rank {} step {} loss {:.3f}", FALLING, FALLING, [n * 90 for n in FALLING]), "one-rank-is-given-other-values", (2,)),
        (side_by_side("rank {} step {} loss 0.3 lr {:.3f}", [0.1] * 9, [0.4] * 9), "learning-rates-differ-between-ranks", ()),
        (side_by_side("rank {} step {} fwd_bwd {:.1f} ms loss 0.3", [30.0] * 9, [400.0] * 9, [31.0] * 9), "one-rank-computes-slowly", (1,)),
        (side_by_side("rank {} step {} forward {:.1f} ms loss 0.3", [30.0] * 9, [400.0] * 9, [31.0] * 9), "one-rank-computes-slowly", (1,)),
        (side_by_side("rank {} step {} loss 0.3 lr {:.2e}", [10.0**-n for n in range(1, 19, 2)]), "learning-rate-vanishes", ()),
    ],
)  # fmt: skip
def test_a_rank_that_is_not_as_the_others(diagnose: Diagnose, log: str, cause: str, culprits: tuple[int, ...]) -> None:
    verdict = diagnose({"job.log": log}).verdict
    assert verdict is not None
    assert (verdict.cause, verdict.culprit_ranks) == (cause, culprits)


@pytest.mark.parametrize(
    "log",
    [
        side_by_side("rank {} step {} loss {:.3f}", FALLING, FALLING, [n * 3 for n in FALLING]),  # shards differ
        side_by_side("rank {} step {} loss {:.3f}", FALLING, FALLING, [200.0, *FALLING[1:]]),  # a bad start
        side_by_side("rank {} step {} loss {:.3f}", FALLING, [0.0] * 9, [0.0] * 9),  # only the last stage has one
        side_by_side("rank {} step {} loss 0.3 lr {:.3f}", [n / 10 for n in FALLING], [n / 10 for n in FALLING]),
        side_by_side("rank {} step {} fwd_bwd {:.1f} ms loss 0.3", [30.0] * 9, [90.0] * 9, [31.0] * 9),  # stages differ
        side_by_side("rank {} step {} loss 0.3 lr {:.2e}", [*[0.1 - n / 100 for n in range(8)], 0.0]),  # ends at 0
    ],
)  # fmt: skip
def test_ranks_of_healthy_jobs(diagnose: Diagnose, log: str) -> None:
    assert diagnose({"job.log": log}).verdict is None
