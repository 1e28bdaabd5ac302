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
