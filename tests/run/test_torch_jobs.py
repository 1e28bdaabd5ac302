"""Real PyTorch jobs under `phalanx run`."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from pathlib import Path

import pytest

from .jobs import finish, processes_of, run, said, start, wait_for

pytestmark = [
    pytest.mark.job,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
    ),
]

TRAIN = """\
import os, sys, time, torch, torch.distributed as dist
mode = sys.argv[1] if len(sys.argv) > 1 else "ok"
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10**6 if mode == "endless" else 8):
    if step == 4 and rank == 1:
        if mode == "raise":
            raise ValueError("bad sample 17")
        if mode == "kill":
            os.kill(os.getpid(), 9)
        if mode == "exit":
            sys.exit(3)
        if mode == "once" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os._exit(9)
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    print(f"step {step} done", flush=True)
dist.destroy_process_group()
"""
LOADER = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 10**6
    def __getitem__(self, index):
        return torch.ones(4)
for step, batch in enumerate(torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers=2)):
    dist.all_reduce(batch)
    if step == 5:
        print("ready", flush=True)
"""


def test_success(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "2", "train.py", script=TRAIN)
    assert "never called one another" not in done.err  # although the group was ended before the rank was
    (line,) = [line for line in done.err.splitlines() if "set for rank 0: " in line]
    told = dict(word.split("=", 1) for word in line.split("set for rank 0: ")[1].split())
    kept = json.loads((done.rank(0) / "environment.json").read_text())
    assert told.items() <= kept.items()
    assert {name for name, value in kept.items() if os.environ.get(name) != value} - told.keys() <= {
        "TEST_JOB",
        "PYTHONPATH",
    }
    assert done.status == 0, done.err
    assert said(done.out)["step 7 done"] == [0, 1]
    assert "torch (train.py imports torch)" in done.err


@pytest.mark.parametrize(("mode", "status"), [("raise", 1), ("kill", 137), ("exit", 3)])
def test_the_rank_that_breaks_is_named_and_the_others_are_victims(tmp_path: Path, mode: str, status: int) -> None:
    done = run(tmp_path, "-n", "3", "train.py", mode, script=TRAIN)
    assert done.status == status, done.err
    verdict = done.report()["verdict"]
    assert verdict["culprit_ranks"] == [1], done.err
    assert verdict["victim_ranks"] == [0, 2]
    assert processes_of(tmp_path) == []


def test_restart(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "2", "--max-restarts", "1", "train.py", "once", script=TRAIN)
    assert done.status == 0, done.err
    assert "step 7 done" in (done.rank(1, attempt=1) / "output.log").read_text()
    assert done.manifest()["attempts"][0]["first_ranks"] == [1]


def test_ctrl_c_ends_data_loader_workers_too(tmp_path: Path) -> None:
    process = start(tmp_path, "-n", "2", "train.py", script=LOADER)
    assert wait_for(lambda: said((tmp_path / "out").read_text()).get("ready") == [0, 1], 300)
    assert len(processes_of(tmp_path)) >= 7  # two ranks, two workers each, and the supervisor
    process.send_signal(signal.SIGINT)
    done = finish(process, tmp_path)
    assert done.status == 130
    assert processes_of(tmp_path) == []
    assert done.report()["verdict"] is None, done.err


def test_a_killed_supervisor_takes_data_loader_workers_with_it(tmp_path: Path) -> None:
    process = start(tmp_path, "-n", "2", "train.py", script=LOADER)
    assert wait_for(lambda: said((tmp_path / "out").read_text()).get("ready") == [0, 1], 300)
    process.kill()
    process.wait()
    assert wait_for(lambda: processes_of(tmp_path) == [], 60)


def test_two_jobs_at_once_do_not_meet(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    started = [start(folder, "-n", "2", "train.py", script=TRAIN) for folder in folders]
    for process, folder in zip(started, folders, strict=True):
        done = finish(process, folder, 500)
        assert done.status == 0, done.err
        assert said(done.out)["step 7 done"] == [0, 1]


SKIPS = """\
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
def evaluate():
    time.sleep(3600)
for step in range(10**6):
    if step == 30 and dist.get_rank() == 2:
        evaluate()
    dist.all_reduce(torch.ones(4))
    time.sleep(0.05)
"""


def test_a_stall_is_seen_explained_and_ended_on_request(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "4", "--on-stall", "abort", "--timeout", "400", "train.py", script=SKIPS)
    assert done.status == 1, done.err
    verdict = done.report()["verdict"]
    assert (verdict["symptom"], verdict["culprit_ranks"], verdict["victim_ranks"]) == ("perf.hang", [2], [0, 1, 3])
    assert "ranks 0, 1, 3 wait in all_reduce at train.py:8; rank 2 sleeps in evaluate() at train.py:4" in done.err
    assert "under `if step == 30 and dist.get_rank() == 2`" in done.err
    assert list(done.rank(2).glob("stacks-*.txt"))
    assert processes_of(tmp_path) == []


SHAPES = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(40):
    odd = step == 30 and dist.get_rank() == 2
    dist.all_reduce(torch.ones(12 if odd else 6))
    if step % 10 == 0:
        print(f"step {step} loss 0.5", flush=True)
"""


def test_a_rank_with_another_shape_is_named_although_all_die_at_once(tmp_path: Path) -> None:
    """Gloo aborts one of them, which leaves nothing behind, and closes on the others; their recorders tell."""
    done = run(tmp_path, "-n", "4", "train.py", script=SHAPES)
    assert done.status != 0
    verdict = done.report()["verdict"]
    assert verdict["culprit_ranks"] == [2], done.err
    assert len(list(done.bundle.glob("attempt0/rank*/collectives-*.json"))) >= 2


SLOW = """\
import time, torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
dist.init_process_group("gloo")
class Data(Dataset):
    def __len__(self):
        return 90
    def __getitem__(self, index):
        time.sleep(0.15 if dist.get_rank() == 1 else 0.01)
        return torch.ones(4)
for step, batch in enumerate(DataLoader(Data(), batch_size=1)):
    dist.all_reduce(batch)
dist.destroy_process_group()
"""


def test_a_job_that_straggles_and_ends_well_ends_with_a_finding(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "3", "train.py", script=SLOW)
    assert done.status == 0, done.err
    verdict = done.report()["verdict"]
    assert (verdict["cause"], verdict["culprit_ranks"]) == ("slow-rank", [1]), done.err
    assert "Rank 1 is steadily slower" in done.err


SWAPPED = """\
import mmap, os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
PAGE, PAGES = 4096, 8192
if dist.get_rank() == 1:
    file = os.open("parameters.bin", os.O_RDWR | os.O_CREAT)
    os.pwrite(file, os.urandom(PAGE * PAGES), 0)
    os.fsync(file)
    parameters = mmap.mmap(file, PAGE * PAGES)
    parameters.madvise(mmap.MADV_RANDOM)
for step in range(90):
    time.sleep(0.01)
    if dist.get_rank() == 1:  # what it needs was put out of memory, and is read back page by page, as in swapping
        parameters.madvise(mmap.MADV_DONTNEED)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        until = time.monotonic() + 0.15
        for page in range(PAGES):
            parameters[page * PAGE]
            if time.monotonic() > until:
                break
    dist.all_reduce(torch.ones(4))
dist.destroy_process_group()
"""


def test_a_rank_that_waits_for_memory_is_told_from_one_that_computes(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "3", "train.py", script=SWAPPED)
    assert done.status == 0, done.err
    assert done.report()["verdict"]["culprit_ranks"] == [1], done.err
    assert "it waits for memory" in done.err
