"""Connections that broke only because the job was ended from outside."""

from __future__ import annotations

from ..conftest import Diagnose

_STEPS = "".join(f"step {step} loss {1 / (step + 1):.3f}\n" for step in range(12))
_ENDED = "W1117 02:19:10.922374    6598 preemption_notifier.cc:90] SIGTERM caught at 2026-11-17T02:19:10.92+00:00\n"
_LOST = (
    "F1117 02:19:15.001512    6594 client.h:80] Terminating process because the JAX distributed service detected fatal errors. "
    "This most likely indicates that another task died; see the other task logs for more details.\n"
)


def test_ranks_that_stood_until_they_were_ended(diagnose: Diagnose) -> None:
    logs = {"proc0.log": _STEPS + "finished\n" + _ENDED, "proc1.log": _STEPS + _ENDED + _LOST}
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.symptom == "perf.hang"


def test_a_peer_lost_before_anybody_was_ended(diagnose: Diagnose) -> None:
    logs = {"proc0.log": _STEPS, "proc1.log": _STEPS + _LOST + _ENDED}
    verdict = diagnose(logs).verdict
    assert verdict is None or verdict.symptom == "fail.communication-error"


_UNHEALTHY = (
    "E0000 00:00:1794867294.606443   21579 base_collective_executor.cc:252] BaseCollectiveExecutor::StartAbort UNAVAILABLE: "
    "Error reported from /job:worker/task:1: The following tasks are unhealthy (stopped sending heartbeats):\n"
    "Traceback (most recent call last):\n"
    '  File "/home/user/train.py", line 24, in {}\n'
    "    return strategy.reduce('mean', train(batch), axis=None)\n"
    "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: Error reported from "
    "/job:worker/task:1: The following tasks are unhealthy (stopped sending heartbeats)\n"
)


def test_a_task_that_was_through_is_not_accused_by_a_chief_that_evaluates_alone(diagnose: Diagnose) -> None:
    for function, last, accused in (("evaluate", 12, ()), ("train", 12, (1,)), ("evaluate", 9, (1,))):
        steps = "".join(_STEPS.splitlines(keepends=True)[:last])
        verdict = diagnose({"worker0.log": _STEPS + _UNHEALTHY.format(function), "worker1.log": steps}).verdict
        assert verdict is not None
        assert verdict.culprit_ranks == accused
