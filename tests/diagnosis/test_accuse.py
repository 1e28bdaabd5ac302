"""Who is accused where the evidence names somebody who is not there."""

import json
from pathlib import Path

import phalanx
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


def test_where_the_watch_accused_nobody_its_stacks_do_not_either(tmp_path: Path) -> None:
    """One rank waits in a collective, most sleep at another line: who came too early or too late cannot be told."""
    where = "rank 0 waits in all_reduce at train.py:16; ranks 1, 2 sleep in build_cache() at train.py:10"
    fields = {
        "seconds": 24,
        "waiting": [0],
        "call": "all_reduce at train.py:16",
        "positions": where,
        "reason": "nobody",
    }
    stall = {
        "at": 1.0, "kind": "stall", "ranks": [], "text": f"nothing has moved for 24 s: {where}",
        "data": {"missing": [], "waiting": [0], "reason": "nobody", "snapshot": 1},
        "facts": [{"fact": "stall.waits-for-rank", "fields": {**fields, "undecided": where}}],
    }  # fmt: skip
    script = tmp_path / "train.py"
    script.write_text(
        "\n" * 9 + "        time.sleep(0.5)\n" + "\n" * 5 + "    dist.all_reduce(total)\n" + "\n" * 13 + "main()\n"
    )
    bundle = tmp_path / "bundle"
    attempt = bundle / "attempt0"
    for rank, (function, line) in enumerate((("main", 16), ("build_cache", 10), ("build_cache", 10))):
        folder = attempt / f"rank{rank}"
        folder.mkdir(parents=True)
        (folder / "stacks-1.txt").write_text(
            f'Process {100 + rank}: python train.py\n\nThread {100 + rank} (idle): "MainThread"\n'
            + (
                "    all_reduce (/opt/venv/lib/site-packages/torch/distributed/distributed_c10d.py:3000)\n"
                if rank == 0
                else ""
            )
            + f"    {function} ({script}:{line})\n    <module> ({script}:30)\n\n"
        )
        (folder / "process.json").write_text(
            json.dumps({"schema": "phalanx.process/1", "rank": rank, "pid": 100 + rank})
        )
    (attempt / "watch.jsonl").write_text(json.dumps(stall) + "\n")
    (bundle / "manifest.json").write_text(
        json.dumps(
            {
                "schema": "phalanx.bundle/1",
                "size": 3,
                "framework": "torch",
                "state": "ended",
                "status": 1,
                "attempts": [{"attempt": 0}],
            }
        )
    )
    verdict = phalanx.diagnose(str(bundle)).verdict
    assert verdict is not None
    assert (verdict.rule, verdict.culprit_ranks) == ("HNG081", ())
