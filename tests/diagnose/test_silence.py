"""Hangs without words."""

from __future__ import annotations

from ..conftest import Diagnose
from .test_verdicts import steps, trace


def test_interrupted_stacks_name_the_rank_that_was_elsewhere(diagnose: Diagnose) -> None:
    logs = {f"rank{rank}.log": steps(40) + trace(60, "dist.all_reduce(x)", "KeyboardInterrupt") for rank in (0, 1, 3)}
    logs["rank2.log"] = steps(40) + trace(17, "time.sleep(600)", "KeyboardInterrupt")
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.symptom == "perf.hang"
    assert verdict.culprit_ranks == (2,)
    assert "train.py:17" in verdict.summary


def test_all_waiting_alike_accuses_nobody(diagnose: Diagnose) -> None:
    logs = {f"rank{rank}.log": steps(40) + trace(60, "dist.all_reduce(x)", "KeyboardInterrupt") for rank in range(4)}
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == ()


def test_ended_from_outside_before_the_ranks_met(diagnose: Diagnose) -> None:
    logs: dict[str, str | bytes] = {
        "rank0.log": "starting\n",
        "rank1.log": "starting\n",
        "exit_codes.json": '{"0": -15, "1": -15}',
    }
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.symptom == "comm.hang-timeout"


def test_a_log_that_just_ends_is_not_a_hang(diagnose: Diagnose) -> None:
    report = diagnose({"rank0.log": steps(40), "rank1.log": steps(40)})
    assert report.verdict is None
    assert any("exit status" in item.needs for item in report.not_checked)
