"""Many jobs at once: within cores and memory, alone where asked, and gone on with after a stop."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from phalanx.zoo.fault import Fault, Needs, RunPlan
from phalanx.zoo.schedule import RESULTS, Budget, Result, measured_budget, remember, remembered, run_many, still_to_do


def fault(folder: Path, name: str, *, memory_mb: int = 100, alone: bool = False, launcher: str = "python") -> Fault:
    (folder / name).mkdir(exist_ok=True)
    plan = RunPlan(launcher, ("python",), 1, 10.0, "merged")
    needs = Needs(memory_mb=memory_mb, alone=alone)
    return Fault(folder / name, name, "torch", True, "train", plan, needs=needs)


class Watcher:
    """Stands for the runs and notes who ran beside whom."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now: set[str] = set()
        self.seen: list[frozenset[str]] = []

    def __call__(self, fault: Fault) -> Result:
        with self.lock:
            self.now.add(fault.name)
            self.seen.append(frozenset(self.now))
        time.sleep(0.05)
        with self.lock:
            self.now.remove(fault.name)
        return Result(fault.name, False, True, "", 0.05, "f")


def test_no_more_than_jobs_and_memory_allow(tmp_path: Path) -> None:
    zoo = [fault(tmp_path, f"torch-{n}", memory_mb=400) for n in range(6)]
    watcher = Watcher()
    done = list(run_many(zoo, watcher, Budget(jobs=5, memory_mb=1000), threading.Event()))
    assert {one.name for one in done} == {one.name for one in zoo}
    assert max(map(len, watcher.seen)) <= 2
    watcher = Watcher()
    list(run_many(zoo, watcher, Budget(jobs=3, memory_mb=100_000), threading.Event()))
    assert max(map(len, watcher.seen)) <= 3


def test_one_that_is_larger_than_all_memory_still_runs(tmp_path: Path) -> None:
    done = list(run_many([fault(tmp_path, "torch-a", memory_mb=10**7)], Watcher(), Budget(2, 100), threading.Event()))
    assert len(done) == 1


def test_alone_means_alone(tmp_path: Path) -> None:
    zoo = [fault(tmp_path, f"torch-{n}") for n in range(4)] + [fault(tmp_path, "torch-alone", alone=True)]
    watcher = Watcher()
    list(run_many(zoo, watcher, Budget(3, 10_000), threading.Event()))
    assert frozenset({"torch-alone"}) in watcher.seen
    assert not any("torch-alone" in seen and len(seen) > 1 for seen in watcher.seen)


def test_a_stop_starts_nothing_more(tmp_path: Path) -> None:
    stop = threading.Event()
    zoo = [fault(tmp_path, f"torch-{n}") for n in range(20)]
    watcher = Watcher()
    for _ in run_many(zoo, watcher, Budget(1, 10_000), stop):
        stop.set()
    assert len(watcher.seen) <= 2


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    zoo = [fault(tmp_path, name) for name in ("torch-a", "torch-b", "torch-c")]
    keep = tmp_path / "runs"
    remember(keep, Result("torch-a", False, True, "", 1.0, zoo[0].fingerprint()))
    remember(keep, Result("torch-b", False, False, "failed", 1.0, zoo[1].fingerprint()))
    remember(keep, Result("torch-c", True, True, "", 1.0, zoo[2].fingerprint()))
    with (keep / RESULTS).open("a", encoding="utf-8") as stream:
        stream.write('{"name": "torch-b", "cu')  # killed while writing
    assert len(remembered(keep)) == 3
    assert [one.name for one in still_to_do(zoo, keep, cured=False)] == ["torch-b", "torch-c"]
    (zoo[0].folder / "train.py").write_text("changed", encoding="utf-8")
    assert [one.name for one in still_to_do(zoo, keep, cured=False)] == ["torch-a", "torch-b", "torch-c"]


def test_the_budget_is_measured() -> None:
    budget = measured_budget()
    assert budget.jobs >= 2
    assert budget.memory_mb > 100
    assert measured_budget(7).jobs == 7


def test_builds_wait_for_one_another_and_others_run_beside_them(tmp_path: Path) -> None:
    builds = [fault(tmp_path, f"horovod-build-{n}", launcher="pip") for n in range(3)]
    others = [fault(tmp_path, f"torch-{n}") for n in range(3)]
    watcher = Watcher()
    done = list(run_many([*builds, *others], watcher, Budget(3, 10_000), threading.Event()))
    assert len(done) == 6
    assert all(sum("build" in name for name in seen) <= 1 for seen in watcher.seen)
    assert any(len(seen) > 1 and any("build" in name for name in seen) for seen in watcher.seen)
