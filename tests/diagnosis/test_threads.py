"""Threads that die beside the training: those that fed it end it later, without a word."""

from __future__ import annotations

import pytest

from phalanx.diagnosis.threads import is_of_thread
from phalanx.model import Event, EventKind, Frame

from ..conftest import Diagnose

THREAD = """\
Exception in thread {name}:
Traceback (most recent call last):
  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner
    self.run()
  File "/usr/lib/python3.11/threading.py", line 982, in run
    self._target(*self._args, **self._kwargs)
  File "/home/user/train.py", line 9, in {function}
    {source}
{error}
"""
FEEDER = THREAD.format(
    name="Thread-1 (load_rows)",
    function="load_rows",
    source="q.put(torch.tensor(parse(row)))",
    error="ValueError: could not convert string to float: ''",
)
WRITER = THREAD.format(
    name="Thread-4 (flush)",
    function="flush",
    source="sock.sendall(buffer)",
    error="OSError: [Errno 32] Broken pipe",
)


def steps(first: int, last: int) -> str:
    return "".join(f"step {step} loss {1 / (step + 1):.4f}\n" for step in range(first, last))


def test_the_rank_whose_feeder_died_is_named(diagnose: Diagnose) -> None:
    """It trained on what stood in the queue, and all stood still after that."""
    logs = {f"rank{rank}.log": steps(0, 30) for rank in (1, 2)}
    logs["rank0.log"] = steps(0, 25) + FEEDER + steps(25, 30)
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("prep.data-loading-failure", (0,))


def test_others_that_waited_for_it_are_its_victims(diagnose: Diagnose) -> None:
    waited = 'Traceback (most recent call last):\n  File "/home/user/train.py", line 20, in <module>\n    loss.backward()\nRuntimeError: [/x/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 10000ms for recv operation to complete\n'
    logs = {f"rank{rank}.log": steps(0, 30) + waited for rank in (1, 2)}
    logs["rank0.log"] = steps(0, 25) + FEEDER + steps(25, 30)
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("prep.data-loading-failure", (0,))


@pytest.mark.parametrize(
    "log",
    [
        steps(0, 25) + FEEDER + steps(25, 90),
        steps(0, 25) + FEEDER + steps(25, 30) + "Training finished\n",
        steps(0, 25) + FEEDER + steps(25, 30) + "saved model.pt\n",
        steps(0, 25) + WRITER + steps(25, 30),
    ],
    ids=["goes on for long", "says that it is done", "has something else to do", "only wrote"],
)
def test_a_thread_that_nobody_misses_is_no_failure(diagnose: Diagnose, log: str) -> None:
    logs = {"rank0.log": log} | {f"rank{rank}.log": log.replace(FEEDER, "").replace(WRITER, "") for rank in (1, 2)}
    assert diagnose(logs).verdict is None


def test_steps_that_are_not_printed_count(diagnose: Diagnose) -> None:
    """A report in ten steps: more of them than a queue holds."""
    rare = "".join(f"step {step} loss 0.5\n" for step in range(0, 200, 10))
    head, tail = rare[: len(rare) // 2], rare[len(rare) // 2 :]
    cut = head.rfind("\n") + 1
    log = head[:cut] + FEEDER + head[cut:] + tail
    assert diagnose({"rank0.log": log, "rank1.log": rare}).verdict is None


def test_only_what_the_interpreter_prints_of_a_thread_is_of_one() -> None:
    main = (Frame("/home/user/train.py", 9, "main"),)
    thread = (Frame("/usr/lib/python3.11/threading.py", 1045, "_bootstrap_inner"), *main)
    assert is_of_thread(Event(EventKind.EXCEPTION, "ValueError", "a.log", 3, frames=thread))
    assert not is_of_thread(Event(EventKind.EXCEPTION, "ValueError", "a.log", 3, frames=main))
    assert not is_of_thread(Event(EventKind.EXCEPTION, "ValueError", "a.log", 3))


def test_a_thread_that_died_in_a_file_of_errors_only(diagnose: Diagnose) -> None:
    """Steps stand in another file, so that nothing tells whether they came after it; nobody failed."""
    for thread in (FEEDER, WRITER):
        logs = {"0/stdout.log": steps(0, 30), "0/stderr.log": thread, "1/stdout.log": steps(0, 30)}
        assert diagnose(logs).verdict is None


def test_what_feeds_is_about_data(diagnose: Diagnose) -> None:
    lookup = THREAD.format(name="prefetch", function="run", source="self.q.put(self.make(i))", error="KeyError: 'box'")
    verdict = diagnose({"rank0.log": steps(0, 25) + lookup, "rank1.log": steps(0, 26)}).verdict
    assert verdict is not None
    assert verdict.symptom == "prep.data-loading-failure"
