"""What the course of training shows: constant and growing losses, slowing steps, and what is noise."""

from __future__ import annotations

import pytest

from ...conftest import Diagnose


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
