"""Runs many faults at once, as far as cores and memory allow, and remembers what is done so that it can go on later."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from phalanx.zoo.fault import Fault

RESULTS = "results.jsonl"


@dataclass(frozen=True, slots=True)
class Result:
    """How one run went. `files` is the fault's fingerprint when it ran.

    `spoke_s` is how long it took until the logs told of trouble, or, where it was `watched`, until the verdict.
    `peak_mb` is the memory it took, `set_aside_mb` what the scheduler had set aside for it.
    """

    name: str
    cured: bool
    good: bool
    why: str
    seconds: float
    files: str
    exit_codes: Mapping[str, int] = field(default_factory=dict)
    timed_out: bool = False
    spoke_s: float | None = None
    watched: bool = False
    peak_mb: int = 0
    set_aside_mb: int = 0
    began: float | None = None  # by the wall clock
    first_s: float | None = None  # until the job's first word


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be used at one time."""

    jobs: int
    memory_mb: int


def measured_budget(jobs: int | None = None) -> Budget:
    """One job more than there are cores, because most of a fault's time is waiting; four fifths of the free memory."""
    return Budget(jobs or (os.cpu_count() or 1) + 1, int(psutil.virtual_memory().available * 0.8 / 2**20))


def run_many(
    faults: Sequence[Fault], run: Callable[[Fault], Result], budget: Budget, stop: threading.Event
) -> Iterator[Result]:
    """Run them and hand out results as they come. Ends early, after the running ones, once `stop` is set."""
    # the longest first, so that the last ones are short; those that want the machine for themselves at the end
    waiting = sorted(faults, key=lambda fault: (fault.needs.alone, -fault.run.timeout_s, fault.name))
    running: dict[Future[Result], Fault] = {}
    with ThreadPoolExecutor(max_workers=max(1, budget.jobs)) as pool:
        try:
            while (waiting and not stop.is_set()) or running:
                while not stop.is_set() and (fault := _next(waiting, list(running.values()), budget)) is not None:
                    waiting.remove(fault)
                    running[pool.submit(run, fault)] = fault
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    del running[future]
                    yield future.result()
        finally:
            # also when the consumer leaves: threads that run a job look at this
            if running:
                stop.set()


def _next(waiting: Sequence[Fault], running: Sequence[Fault], budget: Budget) -> Fault | None:
    """The first that fits beside what runs; with nothing running anything fits, or it would never run."""
    if not running:
        return waiting[0] if waiting else None
    if len(running) >= budget.jobs or any(one.needs.alone for one in running):
        return None
    free = budget.memory_mb - sum(one.memory_mb for one in running)
    # Builds one after the other: the next finds in the compiler's cache what the last one compiled.
    builds = any(one.run.launcher == "pip" for one in running)
    return next(
        (
            one
            for one in waiting
            if not one.needs.alone and one.memory_mb <= free and not (builds and one.run.launcher == "pip")
        ),
        None,
    )


def remember(folder: Path, result: Result) -> None:
    """Append a result; a line is written at once, so that a kill costs at most the last one."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / RESULTS).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(result)) + "\n")


def remembered(folder: Path) -> list[Result]:
    """The results of earlier runs, the last of each fault; a line cut off by a kill is left out."""
    file = folder / RESULTS
    if not file.is_file():
        return []
    found: dict[tuple[str, bool, bool], Result] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            result = Result(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found[result.name, result.cured, result.watched] = result
    return list(found.values())


def still_to_do(faults: Sequence[Fault], folder: Path, *, cured: bool, watched: bool = False) -> list[Fault]:
    """Those without a good result for their present files."""
    done = {
        one.name: one.files for one in remembered(folder) if (one.cured, one.watched) == (cured, watched) and one.good
    }
    return [fault for fault in faults if done.get(fault.name) != fault.fingerprint()]
