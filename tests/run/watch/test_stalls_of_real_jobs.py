"""Real PyTorch jobs that stand still, and healthy ones that only seem to."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.needs import needs_torch
from tests.run.watch.job import HEAD, Job, running

pytestmark = [pytest.mark.job, pytest.mark.timeout(240), needs_torch]

TRAIN = (
    HEAD
    + """
def evaluate():
    time.sleep(300)

def train():
    tensor = torch.ones(8)
    for step in range(4000):
        tensor = torch.ones(8)
        FAULT
        dist.all_reduce(tensor)
        time.sleep(0.02)
        if step % 25 == 0:
            print(f"step {step}", flush=True)

dist.init_process_group("gloo")
train()
dist.destroy_process_group()
"""
)


def script(fault: str, indent: str = "        ") -> str:
    return TRAIN.replace("FAULT", fault.strip().replace("\n", "\n" + indent))


def line_of(job: Job, words: str) -> int:
    return next(number for number, line in enumerate(job.script.read_text().splitlines(), 1) if words in line)


def stalled(job: Job) -> bool:
    return bool(job.of_kind("stall"))


def test_a_rank_that_skips_a_collective_and_sleeps_is_named_with_its_condition(tmp_path: Path) -> None:
    with running(tmp_path, script("if rank == 2 and step == 60:\n    evaluate()"), 4) as job:
        assert job.until(stalled)
        (stall,) = job.of_kind("stall")
        assert stall.ranks == (2,)
        assert stall.data["missing"] == [2]
        assert stall.data["waiting"] == [0, 1, 3]
        assert stall.data["quiet_s"] < 14
        assert f"ranks 0, 1, 3 wait in all_reduce at train.py:{line_of(job, 'dist.all_reduce')}" in stall.text
        assert f"rank 2 sleeps in evaluate() at train.py:{line_of(job, 'time.sleep(300)')}" in stall.text
        assert "under `if rank == 2 and step == 60`" in stall.text
        folder = job.attempt / "rank2"
        assert "evaluate" in (folder / "stacks-1.txt").read_text()
        assert '"world_size": 4' in (folder / "collectives-1.json").read_text()
        assert '"torch"' in (folder / "versions.json").read_text()


def test_the_same_without_the_watch_inside(tmp_path: Path) -> None:
    with running(tmp_path, script("if rank == 0 and step == 60:\n    evaluate()"), 3, inside=False) as job:
        assert job.until(stalled)
        (stall,) = job.of_kind("stall")
        assert stall.ranks == (0,)
        assert not (job.attempt / "rank0" / "heartbeat").exists()


def test_a_stopped_rank_is_named_at_once_and_goes_on(tmp_path: Path) -> None:
    with running(tmp_path, script("pass"), 3) as job:
        assert job.until(lambda job: job.said(1, "step 50"))
        os.kill(job.ranks[1].pid, signal.SIGSTOP)
        assert job.until(stalled, 30)
        (stall,) = job.of_kind("stall")
        assert stall.ranks == (1,)
        assert stall.data["quiet_s"] < 6
        assert f"kill -CONT {job.ranks[1].pid}" in stall.text
        assert "No stacks" not in stall.text
        assert "train" in (job.attempt / "rank1" / "stacks-1.txt").read_text()
        before = job.watch.status()[0].step
        os.kill(job.ranks[1].pid, signal.SIGCONT)
        assert job.until(lambda job: (job.watch.status()[0].step or 0) > (before or 0), 60)


@pytest.mark.parametrize(
    "loop",
    [
        "    while not ready:\n        done = list(range(9999)) == ready\n        done = tuple(range(9999)) == ready",
        "    while not ready: pass",  # from outside this may be one call of native code
    ],
)
def test_an_endless_loop_on_one_rank_is_told_from_work(tmp_path: Path, loop: str) -> None:
    fault = f"if rank == 1 and step == 60:\n    ready = []\n{loop}"
    with running(tmp_path, script(fault), 3, stall_after=5.0) as job:
        assert job.until(stalled)
        (stall,) = job.of_kind("stall")
        assert stall.ranks == (1,)
        assert stall.data["kind"] == "busy"
        assert stall.data["quiet_s"] < 4 * stall.data["patience_s"]


def test_a_dataloader_worker_that_blocks(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 4000
    def __getitem__(self, index):
        if rank == 1 and index == 100:
            time.sleep(300)
        return torch.ones(4) * index

def main():
    dist.init_process_group("gloo")
    for step, batch in enumerate(DataLoader(Numbers(), batch_size=2, num_workers=2)):
        dist.all_reduce(batch)
        time.sleep(0.02)

main()
"""
    )
    with running(tmp_path, text, 3) as job:
        assert job.until(stalled)
        (stall,) = job.of_kind("stall")
        assert stall.ranks == (1,)
        assert "rank 1 waits for its data loader" in stall.text
        assert f"__getitem__() at train.py:{line_of(job, 'time.sleep(300)')}" in stall.text
        assert "__getitem__" in (job.attempt / "rank1" / "stacks-1.txt").read_text()


def test_a_stall_in_ddps_backward(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
def main():
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    for step in range(4000):
        if rank == 0 and step == 80:
            time.sleep(300)
        model(torch.randn(4, 64)).sum().backward()
        time.sleep(0.02)

main()
"""
    )
    with running(tmp_path, text, 3) as job:
        assert job.until(stalled)
        (stall,) = job.of_kind("stall")
        assert stall.ranks == (0,)
        assert f"ranks 1, 2 wait in backward, for gradients, at train.py:{line_of(job, 'backward()')}" in stall.text


def test_peers_that_never_come(tmp_path: Path) -> None:
    text = HEAD + "if rank == 1:\n    time.sleep(300)\ndist.init_process_group('gloo')\n"
    with running(tmp_path, text, 3) as job:
        assert job.until(stalled)
        (stall,) = job.of_kind("stall")
        assert stall.ranks == (1,)
        assert "ranks 0, 2 wait in init_process_group" in stall.text


def test_native_code_that_keeps_the_interpreters_lock(tmp_path: Path) -> None:
    fault = "if rank == 1 and step == 60:\n    import ctypes\n    ctypes.PyDLL(None).sleep(300)"
    with running(tmp_path, script(fault), 2) as job:
        assert job.until(stalled)
        (stall,) = job.of_kind("stall")
        assert stall.ranks == (1,)
        assert "native code holds the interpreter's lock" in stall.text


def test_two_ranks_that_both_receive_first(tmp_path: Path) -> None:
    fault = "if step == 60:\n    other = torch.empty(8)\n    dist.recv(other, src=1 - rank)\n    dist.send(tensor, dst=1 - rank)"
    with running(tmp_path, script(fault), 2) as job:
        assert job.until(stalled)
        (stall,) = job.of_kind("stall")
        assert stall.ranks == ()
        assert f"ranks 0, 1 wait in recv at train.py:{line_of(job, 'dist.recv')}" in stall.text
        assert "in a circle: rank 0 receives from rank 1, which receives from rank 0" in stall.text


@pytest.mark.parametrize("inside", [True, False])
def test_a_ring_of_requests_that_nobody_answers(tmp_path: Path, inside: bool) -> None:
    fault = (
        "if step == 60:\n    left = (rank - 1) % 3\n    request = dist.irecv(torch.empty(8), src=left)\n"
        "    request.wait()\n    dist.send(tensor, dst=(rank + 1) % 3)"
    )
    with running(tmp_path, script(fault), 3, inside=inside) as job:
        assert job.until(stalled)
        (stall,) = job.of_kind("stall")
        assert stall.ranks == ()
        assert f"ranks 0, 1, 2 wait in irecv at train.py:{line_of(job, 'request.wait')}" in stall.text
        assert "rank 0 receives from rank 2, which receives from rank 1, which receives from rank 0" in stall.text


def test_a_pipeline_whose_first_stage_does_not_send(tmp_path: Path) -> None:
    fault = (
        "if step == 60:\n    if rank == 0:\n        evaluate()\n    else:\n        dist.recv(tensor, src=rank - 1)\n"
        "    if rank < 2:\n        dist.send(tensor, dst=rank + 1)"
    )
    with running(tmp_path, script(fault), 3) as job:
        assert job.until(stalled)
        (stall,) = job.of_kind("stall")
        assert stall.ranks == (0,)
        assert f"rank 2 waits in recv from rank 1 at train.py:{line_of(job, 'dist.recv')}" in stall.text
