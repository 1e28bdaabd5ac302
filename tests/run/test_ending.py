"""Who is sent what, and when."""

from __future__ import annotations

import signal

from phalanx.run.ending import Ending, Reason, describe_code, status_of

FAILED = Reason("failed", "rank 1 ended with exit status 3", 3, (1,))
STOPPED = Reason("interrupted", "interrupted by SIGINT", 130)


def test_after_a_failure_peers_get_time_then_a_request_then_force() -> None:
    ending = Ending(grace=5.0)
    assert ending.wait(0.0) is None
    ending.begin(FAILED, 10.0)
    assert ending.due(14.9) is None
    assert ending.wait(14.0) == 1.0
    assert ending.due(15.0) == signal.SIGTERM
    assert ending.due(15.1) is None
    assert ending.due(20.0) == signal.SIGKILL
    assert ending.due(99.0) is None


def test_a_person_is_obeyed_at_once_and_the_first_reason_stands() -> None:
    ending = Ending(grace=5.0)
    ending.begin(FAILED, 0.0)
    ending.begin(STOPPED, 1.0, request=signal.SIGINT)
    assert ending.due(1.0) == signal.SIGINT
    assert ending.due(6.0) == signal.SIGKILL
    assert ending.reason is FAILED


def test_force() -> None:
    ending = Ending(grace=60.0)
    ending.begin(STOPPED, 0.0, request=signal.SIGINT)
    ending.force(0.5)
    assert ending.due(0.5) == signal.SIGKILL


def test_late_calls_skip_to_the_last_signal_that_is_due() -> None:
    ending = Ending(grace=1.0)
    ending.begin(FAILED, 0.0)
    assert ending.due(100.0) == signal.SIGKILL


def test_only_failures_are_worth_another_attempt() -> None:
    assert FAILED.may_restart
    assert not STOPPED.may_restart


def test_codes_in_words() -> None:
    assert describe_code(-9) == "signal 9 (SIGKILL)"
    assert describe_code(3) == "exit status 3"
    assert (status_of(-9), status_of(3)) == (137, 3)
