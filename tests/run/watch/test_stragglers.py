"""A rank that is steadily slower: from made-up shares, and one real job."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.run.watch.heartbeat import Heartbeat
from phalanx.run.watch.inside.phalanx_inside import CONNECTED
from phalanx.run.watch.look import RankLook
from phalanx.run.watch.processes import ProcessSample
from phalanx.run.watch.stall import Signs
from phalanx.run.watch.stragglers import Shares, StragglerWatch, describe, slowest_of
from tests.run.watch.job import HEAD, running


def shares(waits: float, data: float = 0.0, runs: float = 0.5, queues: float = 0.0, faults: float = 0.0) -> Shares:
    return Shares(waits, data, runs, queues, faults, 0.0)


def test_the_one_that_hardly_waits_stands_out() -> None:
    assert slowest_of({0: shares(0.5), 1: shares(0.05), 2: shares(0.45)}) == 1


@pytest.mark.parametrize("waits", [(0.5, 0.45, 0.5), (0.05, 0.05, 0.5), (0.0, 0.0, 0.0), (0.9, 0.6, 0.9)])
def test_nobody_stands_out(waits: tuple[float, ...]) -> None:
    assert slowest_of({rank: shares(share) for rank, share in enumerate(waits)}) is None


@pytest.mark.parametrize(
    ("slow", "why"),
    [
        (shares(0.0, data=0.8, runs=0.1), "data"),
        (shares(0.0, runs=0.95), "compute"),
        (shares(0.0, runs=0.4, queues=0.5), "processor"),
        (shares(0.0, runs=0.2, faults=400), "memory"),
        (shares(0.0, runs=0.05), "idle"),
    ],
)
def test_what_it_does_meanwhile(slow: Shares, why: str) -> None:
    seen = describe(1, {0: shares(0.5), 1: slow, 2: shares(0.5)})
    assert (seen.kind, seen.ranks, seen.data["why"]) == ("straggler", (1,), why)
    assert seen.data["factor"] == 2.0
    assert "wait 50% of their time for it" in seen.text


@pytest.mark.job
@pytest.mark.timeout(240)
def test_a_real_straggler(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install torch")
    script = (
        HEAD
        + """
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 100000
    def __getitem__(self, index):
        time.sleep(0.12 if rank == 2 else 0.01)
        return torch.ones(4)

dist.init_process_group("gloo")
for batch in DataLoader(Slow(), batch_size=1, num_workers=0):
    dist.all_reduce(batch)
"""
    )
    with running(tmp_path, script, 3) as job:
        job.watch._stragglers = StragglerWatch(window=6.0)
        assert job.until(lambda job: bool(job.of_kind("straggler")), 150)
        seen = job.of_kind("straggler")[0]
        assert seen.ranks == (2,)
        assert seen.data["why"] == "data"
        assert seen.data["others_wait"] > 0.5
        assert job.of_kind("stall") == []


def look(time: float, rank: int, waits: float, data: float) -> RankLook:
    """A rank after so many seconds of a job in step, four looks a second."""
    looks = int(time * 4)
    calls = int(time * 10)
    beat = Heartbeat(rank, looks, time, CONNECTED, calls, calls, 0, looks, int(looks * data), int(looks * waits), {})
    process = ProcessSample(rank, 1, "S", time, 0.0, 1, 0, 0, 0)
    return RankLook(time, process, beat, None, 0.3 * time, 0.0, time, 0.0, 0, 0, 0, Signs())


def watched(seconds: float, slow_data: float) -> StragglerWatch:
    watch = StragglerWatch()
    for number in range(int(seconds * 2)):
        now = number / 2
        looks = {rank: look(now, rank, 0.7, 0.1) for rank in (0, 2)} | {1: look(now, 1, 0.05, slow_data)}
        assert watch.update(now, looks) == []
    return watch


def test_a_short_job_is_judged_at_its_end() -> None:
    (seen,) = watched(20, 0.9).at_the_end()
    assert (seen.ranks, seen.data["why"]) == ((1,), "data")


def test_a_short_job_is_not_judged_where_it_is_not_known_what_the_slow_rank_does_or_for_too_short() -> None:
    assert watched(20, 0.0).at_the_end() == []
    assert watched(6, 0.9).at_the_end() == []
