"""An elastic driver that gives up after a worker has failed repeats that failure: the worker's own words are the verdict."""

from __future__ import annotations

from pathlib import Path

from phalanx.diagnosis import diagnose_paths
from phalanx.model import Finding

TRAINS = """\
[0]<stdout>:[0/2] batch 10 loss 0.1130
[1]<stdout>:[1/2] batch 10 loss 0.1130
"""
RAISES = """\
[1]<stderr>:Traceback (most recent call last):
[1]<stderr>:  File "/job/train.py", line 12, in train
[1]<stderr>:    raise ValueError('sample 4711 has no label')
[1]<stderr>:ValueError: sample 4711 has no label
Process 1 exit with status code 1.
"""
GIVES_UP = """\
ERROR:root:failed to activate new hosts -> stop running
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/horovod/runner/elastic/registration.py", line 177, in _on_workers_recorded
    self._driver.resume()
  File "/opt/venv/lib/python3.11/site-packages/horovod/runner/common/util/timeout.py", line 39, in check_time_out_for
    raise TimeoutException(
horovod.runner.common.util.timeout.TimeoutException: Timed out waiting for {activity}. Please check that you have enough resources to run at least 2 Horovod processes. Timeout after 15 seconds.
"""
ENDS = """\
[0]<stderr>:Terminated
Process 0 exit with status code 143.
"""


def _verdict(tmp_path: Path, text: str) -> Finding | None:
    log = tmp_path / "elastic.log"
    log.write_text(text)
    return diagnose_paths([str(log)]).verdict


def test_the_workers_exception_wins_over_the_drivers_time_out(tmp_path: Path) -> None:
    verdict = _verdict(tmp_path, TRAINS + RAISES + GIVES_UP + ENDS)
    assert verdict is not None
    assert "sample 4711" in verdict.summary
    assert verdict.culprit_ranks == (1,)


def test_a_worker_that_was_killed_wins_too(tmp_path: Path) -> None:
    killed = "[1]<stderr>:Killed\nProcess 1 exit with status code 137.\n"
    verdict = _verdict(tmp_path, TRAINS + killed + GIVES_UP + ENDS)
    assert verdict is not None
    assert verdict.symptom == "fail.other"
    assert verdict.culprit_ranks == (1,)


def test_a_driver_that_never_had_its_workers_is_the_verdict_itself(tmp_path: Path) -> None:
    verdict = _verdict(tmp_path, GIVES_UP)
    assert verdict is not None
    assert verdict.rule == "CHT006"
    assert verdict.culprit_ranks == ()


def test_what_a_worker_says_after_the_driver_gave_up_does_not_win(tmp_path: Path) -> None:
    late = RAISES.replace("Process 1 exit with status code 1.\n", "")
    verdict = _verdict(tmp_path, GIVES_UP + late)
    assert verdict is not None
    assert verdict.rule == "CHT006"


def test_of_a_log_that_begins_after_others_had_failed_nobody_is_accused(tmp_path: Path) -> None:
    both = RAISES + "Process 0 exit with status code 1.\n"
    verdict = _verdict(tmp_path, both)
    assert verdict is not None
    assert "sample 4711" in verdict.summary
    assert verdict.culprit_ranks == ()
    verdict = _verdict(tmp_path, TRAINS + both)  # rank 0 speaks, and of nothing like it
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)
