"""Who is accused where the evidence names somebody who is not there."""

from tests.conftest import Diagnose

WAITS = """\
[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/home/u/train.py", line 17, in <module>
[rank{rank}]:     dist.init_process_group("gloo", rank=rank, world_size=4)
[rank{rank}]: torch.distributed.DistStoreError: wait timeout after 40000ms, keys: /default_pg/0//cpu//0/3
"""
FAILURE = """\
E1118 01:40:00.000 100 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: 1) local_rank: 2 (pid: 103) of binary: python
"""


def test_a_rank_that_was_never_started_blames_none_that_was(diagnose: Diagnose) -> None:
    log = "".join(WAITS.format(rank=rank) for rank in (0, 1, 2)) + FAILURE
    verdict = diagnose(log).verdict
    assert verdict is not None
    assert verdict.rule == "HNG012"
    assert verdict.culprit_ranks in ((), (3,))  # the one that was never started, or nobody


def test_a_task_that_says_itself_that_it_was_taken_for_dead_is_not_accused(diagnose: Diagnose) -> None:
    """Its heartbeats came late, on a loaded machine say: it lived, and the coordination service was wrong."""
    said = (
        "Traceback (most recent call last):\n"
        '  File "/home/u/train.py", line 21, in main\n'
        "    step_fn()\n"
        "tensorflow.python.framework.errors_impl.AbortedError: Graph execution error:\n"
        "Collective ops is aborted by: Unexpected heartbeat request from an already-in-error task: "
        "/job:worker/replica:0/task:0 with existing error: UNAVAILABLE: Task /job:worker/replica:0/task:0 heartbeat timeout.\n"
    )
    verdict = diagnose({"worker0.log": said, "worker1.log": "step 29 loss 0.3\n"}).verdict
    assert verdict is not None
    assert 0 not in verdict.culprit_ranks
