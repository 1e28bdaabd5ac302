"""Whom frameworks themselves name, in their own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.zoo.fault import Fault, RunPlan
from phalanx.zoo.named import named_by_framework

PLAN = RunPlan("torchrun", ("torchrun",), 4, 10.0, "merged")
FAULT = Fault(Path("torch-x"), "t", "torch", True, "train", PLAN)

TORCHRUN = """
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-16_00:14:38
  host      : node0
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 4243)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-16_00:14:38
  host      : node0
  rank      : 2 (local_rank: 2)
  exitcode  : 1 (pid: 4242)
"""
STALL = """[1,0]<stderr>: Stalled ranks:
[1,0]<stderr>: Missing ranks:
[1,0]<stderr>: 1: [allgather.epoch_loss]
[1,0]<stderr>: 2: [allgather.epoch_loss]
[1,0]<stdout>: epoch 1 loss 0.2315
   The first process to do so was:

   Process name: [prterun-node0-1936@1,0]
"""


@pytest.mark.parametrize(
    ("text", "ranks", "by"),
    [
        (TORCHRUN, {2}, "torchrun's root cause"),
        (STALL, {1, 2}, "Horovod's stall inspector"),
        ("causing the job to be terminated. The first process to do so was:\nProcess name: 2\n", {2}, "horovodrun"),
        ("The first process to do so was:\n\n   Process name: [prterun-node0-19@1,3]\n", {3}, "mpirun"),
        ("-- Process 3 terminated with the following error:\n", {3}, "torch.multiprocessing"),
        ("[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 6000 ms", {1, 3}, "monitored_barrier"),
        ("aborted by: Error reported from /job:worker/task:1: x", {1}, "TensorFlow's coordination service"),
    ],
)
def test_reads_each_ones_words(tmp_path: Path, text: str, ranks: set[int], by: str) -> None:
    (tmp_path / "job.log").write_text(text, encoding="utf-8")
    named = named_by_framework(FAULT, tmp_path)
    assert named.ranks == ranks
    assert named.by == (by,)


def test_nobody_is_named_where_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("RuntimeError: Connection closed by peer [127.0.0.1]:1\n", encoding="utf-8")
    (tmp_path / "exit_codes.json").write_text('{"0": 1}', encoding="utf-8")
    assert named_by_framework(FAULT, tmp_path).ranks == frozenset()


def test_a_task_is_told_by_the_cluster_description(tmp_path: Path) -> None:
    config = '{"cluster": {"ps": ["localhost:{port1}"]}, "task": {"type": "ps", "index": 0}}'
    plan = RunPlan("processes", ("python",), 3, 10.0, "per-rank", rank_env={1: {"TF_CONFIG": config}})
    fault = Fault(Path("tensorflow-x"), "t", "tensorflow", True, "train", plan)
    (tmp_path / "rank0.log").write_text("Error reported from /job:ps/replica:0/task:0: gone", encoding="utf-8")
    assert named_by_framework(fault, tmp_path).ranks == {1}
