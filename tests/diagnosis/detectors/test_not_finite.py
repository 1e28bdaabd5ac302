"""Since when, and on which rank first, a loss is no number."""

from __future__ import annotations

from ...conftest import Diagnose


def lines(*losses: tuple[int, int, str]) -> str:
    return "".join(f"[rank{rank}]: step {step} loss {loss}\n" for rank, step, loss in losses)


def headline(diagnose: Diagnose, log: str, culprits: tuple[int, ...] = ()) -> str:
    verdict = diagnose(log).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == culprits
    return verdict.headline


def test_first_on_one_rank(diagnose: Diagnose) -> None:
    log = lines((0, 4, "0.3"), (1, 4, "0.3"), (0, 5, "0.3"), (1, 5, "nan"), (0, 6, "nan"), (1, 6, "nan"))
    assert headline(diagnose, log, (1,)).startswith("Loss is NaN since step 5, first on rank 1;")


def test_who_does_not_report_that_step_may_have_been_first(diagnose: Diagnose) -> None:
    log = lines((0, 4, "0.3"), (1, 4, "0.3"), (1, 5, "nan"), (0, 6, "nan"), (1, 6, "nan"))
    assert headline(diagnose, log) == "Loss is NaN since step 5."


def test_infinite_at_once_on_all(diagnose: Diagnose) -> None:
    log = lines((0, 4, "0.3"), (1, 4, "0.3"), (0, 5, "inf"), (1, 5, "inf"))
    assert headline(diagnose, log) == "Loss is infinite since step 5."


def test_ranks_that_wrote_into_one_line(diagnose: Diagnose) -> None:
    """An unbuffered `print` writes the line's end by itself, so that another rank's line may come before it."""
    steps = [f"[rank {rank}] step {step} loss 0.5\n" for step in range(6) for rank in range(3)]
    torn = "[rank 0] step 6 loss 0.3122[rank 2] step 6 loss 0.3122\n\n[rank 1] step 6 loss nan\n"
    after = [f"[rank {rank}] step {step} loss nan\n" for step in range(7, 12) for rank in range(3)]
    verdict = diagnose({"job.log": "".join([*steps, torn, *after])}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)
    assert verdict.headline.startswith("Loss is NaN since step 6, first on rank 1")
