"""What the course of training shows: constant and growing losses, slowing steps, and what is noise."""

from __future__ import annotations

import pytest

from ..conftest import Diagnose


def course(*losses: float) -> str:
    return "".join(f"epoch {epoch} loss {loss:.4f}\n" for epoch, loss in enumerate(losses))


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (course(*[13.6617] * 6), "weights-never-change"),
        (course(9.1, 30.8, 120.5, 700.1, 5021.3, 41002.9, 380110.5), "loss-grows"),
        (course(9.4, 21148, 1064, 3864, 11769, 7724, 2976, 645), "loss-grows"),
        ("".join(f"step {i} loss {2 - i / 10:.3f} {900 / 1.5**i:.1f} samples/sec\n" for i in range(9)), "work-per-step-grows"),
    ],
)  # fmt: skip
def test_a_course_that_no_program_complains_of(diagnose: Diagnose, log: str, cause: str) -> None:
    verdict = diagnose({"job.log": log}).verdict
    assert verdict is not None
    assert verdict.cause == cause
    assert verdict.culprit_ranks == ()


@pytest.mark.parametrize(
    "log",
    [
        course(2.3, 1.9, 90.0, 5.0, 1.5, 1.2, 1.1),  # a spike
        course(0.0, 0.0, 0.0, 0.0, 0.0, 0.0),  # as good as it gets
        course(2.3, 2.31, 2.29, 2.3, 2.28, 2.31, 2.27),  # slow, but it moves
        "".join(f"step {i} loss {2 - i / 10:.3f} lr 0.0000\n" for i in range(9)),  # a small rate, rounded
        "".join(f"[{i}/9] Loss_D: {(i * 7) % 5}.1 Loss_G: {i + 1}.5\n" for i in range(9)),  # two players
        "step 1 loss 2.3112\nstep 2 loss nan\nstep 3 loss 2.2110\nstep 4 loss 2.1754\n",  # got over
    ],
)
def test_noise_is_no_course(diagnose: Diagnose, log: str) -> None:
    assert diagnose({"job.log": log}).verdict is None


def lines(form: str, *columns: list[float]) -> str:
    return "".join(form.format(number, *values) + "\n" for number, values in enumerate(zip(*columns, strict=True)))


NINE = [float(number) for number in range(9)]
CAUSES = {
    "learning-stalled": lines("Epoch {} loss: {:.4f} acc: {:.2f}%", [2.303 + n % 3 / 1e3 for n in NINE], [10 + n % 2 / 5 for n in NINE]),
    "metric-summed-not-averaged": lines("epoch {} loss={:.3f} val_acc={:.3f}", [0.3 - n / 50 for n in NINE], [2.7 + n / 30 for n in NINE]),
    "memory-leak": lines("step {} loss {:.3f} cpu_mem_gb={:.2f}", [1 / (n + 1) for n in NINE], [2 + n / 2 for n in NINE]),
    "input-pipeline-bottleneck": lines("step {} data {:.3f}s fwd+bwd {:.3f}s loss 0.3", [0.25 + n / 100 for n in NINE], [0.01] * 9),
}  # fmt: skip


@pytest.mark.parametrize("cause", CAUSES)
def test_numbers_that_cannot_be_right(diagnose: Diagnose, cause: str) -> None:
    verdict = diagnose({"job.log": CAUSES[cause]}).verdict
    assert verdict is not None
    assert verdict.cause == cause
    assert verdict.culprit_ranks == ()


@pytest.mark.parametrize(
    "log",
    [
        lines("Epoch {} loss: {:.4f} acc: {:.2f}%", [0.69 - n / 80 for n in NINE], [50 + n * 2 for n in NINE]),  # it learns
        lines("epoch {} loss={:.3f} val_acc={:.3f}", [6 - n / 50 for n in NINE], [1.7 + n / 30 for n in NINE]),  # per cent
        lines("step {} loss {:.3f} rss={:.0f}MB", [1 / (n + 1) for n in NINE], [400 + min(n, 4) * 90 for n in NINE]),
        lines("step {} data {:.3f}s fwd+bwd {:.3f}s loss 0.3", [0.02 + n / 1000 for n in NINE], [0.3] * 9),
    ],
)  # fmt: skip
def test_numbers_of_healthy_jobs(diagnose: Diagnose, log: str) -> None:
    assert diagnose({"job.log": log}).verdict is None


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
