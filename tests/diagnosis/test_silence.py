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


LOADER = """\
Traceback (most recent call last):
  File "/home/user/train.py", line 17, in <module>
    for x in loader:
  File "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1291, in _try_get_data
    data = self._data_queue.get(timeout=timeout)
  File "/usr/lib/python3.11/multiprocessing/queues.py", line 113, in get
    if not self._poll(timeout):
  File "/usr/lib/python3.11/multiprocessing/connection.py", line 947, in wait
    ready = selector.select(timeout)
KeyboardInterrupt
"""


def test_who_waits_for_its_own_data_is_whom_the_others_wait_for(diagnose: Diagnose) -> None:
    logs = {f"rank{rank}.log": steps(40) + trace(60, "dist.all_reduce(x)", "KeyboardInterrupt") for rank in (0, 1, 3)}
    logs["rank2.log"] = steps(40) + LOADER
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("perf.hang", (2,))


def test_all_wait_for_their_own_data(diagnose: Diagnose) -> None:
    verdict = diagnose({f"rank{rank}.log": "epoch 0\n" + LOADER for rank in range(2)}).verdict
    assert verdict is not None
    assert verdict.symptom in ("prep.hang-timeout", "perf.hang")
    assert verdict.culprit_ranks == ()
    assert "its own data" in verdict.summary
    assert verdict.fixes[0].pattern == "fix-dataset-api-usage"


def test_connections_that_broke_when_a_key_was_pressed(diagnose: Diagnose) -> None:
    closed = "RuntimeError: [/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.5]:4242."
    logs = {f"rank{rank}.log": steps(40) + trace(60, "loss.backward()", closed) for rank in (0, 1)}
    logs["rank2.log"] = steps(40) + LOADER
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("perf.hang", (2,))


def test_a_job_that_is_stopped_while_it_comes_up_does_not_hang(diagnose: Diagnose) -> None:
    importing = (
        'Traceback (most recent call last):\n  File "/home/user/train.py", line 1, in <module>\n    import torch\n'
        '  File "<frozen importlib._bootstrap>", line 1176, in _find_and_load\n'
        '  File "<frozen importlib._bootstrap_external>", line 729, in _compile_bytecode\nKeyboardInterrupt\n'
    )
    assert diagnose({f"rank{rank}.log": importing for rank in range(2)}).verdict is None


def dump(pid: int, *frames: str) -> str:
    inner = "".join(f"    {frame}\n" for frame in frames)
    return f'Process {pid}: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread {pid} (idle): "MainThread"\n{inner}    <module> (train.py:130)\n'


WAITS = dump(4242, "all_reduce (torch/distributed/distributed_c10d.py:2501)", "train (train.py:88)")
LOADS = dump(4243, "read (libc.so.6)", "load (train.py:44)", "train (train.py:80)")


def test_two_dumps_of_a_job_that_hangs_are_enough(diagnose: Diagnose) -> None:
    verdict = diagnose({"rank0.txt": WAITS, "rank1.txt": LOADS}).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks, verdict.accused_by) == ("perf.hang", (1,), "outside")
    assert "train.py:44" in verdict.because


def test_a_process_id_is_no_rank(diagnose: Diagnose) -> None:
    for files in ({"dump.4242.txt": WAITS, "dump.4243.txt": LOADS}, {"dumps.txt": WAITS + LOADS}):
        report = diagnose(dict(files))
        assert report.verdict is not None
        assert report.verdict.culprit_ranks == ()
        assert report.verdict.symptom == "perf.hang"
        assert report.world.size is None


def test_one_dump_and_dumps_of_a_job_that_goes_on_are_no_hang(diagnose: Diagnose) -> None:
    assert diagnose({"rank0.txt": WAITS}).verdict is None
    assert (
        diagnose({"rank0.log": steps(20) + WAITS + steps(60), "rank1.log": steps(20) + LOADS + steps(60)}).verdict
        is None
    )


def test_ranks_that_were_ended_in_their_own_code_did_not_hang(diagnose: Diagnose) -> None:
    """A healthy job that somebody cancels with Ctrl-C."""
    log = ""
    for step in range(5):
        log += "".join(f"[rank{rank}]: step {step} loss 0.{5 - step}\n" for rank in range(2))
    for rank in range(2):
        log += (
            f'[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]:   File "/home/u/train.py", line 9, in <module>\n'
            f"[rank{rank}]:     loss = compute(batch)\n[rank{rank}]: KeyboardInterrupt\n"
        )
    assert diagnose(log).verdict is None
