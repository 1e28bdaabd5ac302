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
