"""Where the ranges of a dump are looked through: processes of this machine, or a Ray cluster."""

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context
from typing import Any

from phalanx.study.dump.read import Engine, Range
from phalanx.study.dump.rows import Found
from phalanx.study.errors import StudyError, need


def pick_engine(name: str, processes: int | None = None) -> Engine:
    """The engine that the command line names."""
    if name == "local":
        return on_processes(processes)
    if name == "ray":
        return on_ray()
    raise StudyError(f"there is no engine {name!r}; known are local and ray.")


def on_processes(count: int | None = None) -> Engine:
    """An engine of processes on this machine."""

    def run(work: Callable[[Range], Found], ranges: list[Range]) -> Iterator[tuple[Range, Found]]:
        workers = min(count or os.cpu_count() or 1, len(ranges))
        if workers <= 1:
            yield from ((one, work(one)) for one in ranges)
            return
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            # Few ranges under way at once: what they found waits in memory.
            waiting = iter(ranges)
            under_way = {pool.submit(work, one): one for one in islice(waiting, workers * 2)}
            while under_way:
                finished, _ = wait(under_way, return_when=FIRST_COMPLETED)
                for future in finished:
                    one = under_way.pop(future)
                    following = next(waiting, None)
                    if following is not None:
                        under_way[pool.submit(work, following)] = following
                    yield one, future.result()

    return run


def on_ray(address: str | None = None) -> Engine:
    """An engine of Ray tasks. The dump must lie under the same path on every machine, and be plain XML."""

    def run(work: Callable[[Range], Found], ranges: list[Range]) -> Iterator[tuple[Range, Found]]:
        ray = need("ray", "--on ray")
        # the first failed task is told by us; Ray would print the others' tracebacks beside it
        os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
        try:
            # RAY_ADDRESS or a running cluster of this machine; otherwise Ray starts one here.
            ray.init(address=address or os.environ.get("RAY_ADDRESS"), ignore_reinit_error=True, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise StudyError(
                f"Ray cannot be reached ({error}). Start it with `ray start --head`, or set RAY_ADDRESS."
            ) from error
        task = ray.remote(scheduling_strategy="SPREAD", max_retries=3)(work)
        slots = max(int(ray.cluster_resources().get("CPU", 1)), 1) * 2
        yield from _gather(ray, task, ranges, slots)

    return run


def _gather(ray: Any, task: Any, ranges: list[Range], slots: int) -> Iterator[tuple[Range, Found]]:
    """Few tasks under way at once, results in the order in which they are ready."""
    waiting = iter(ranges)
    under_way = {task.remote(one): one for one in islice(waiting, slots)}
    while under_way:
        (ready,), _ = ray.wait(list(under_way), num_returns=1)
        one = under_way.pop(ready)
        following = next(waiting, None)
        if following is not None:
            under_way[task.remote(following)] = following
        try:
            found: Found = ray.get(ready)
        except ray.exceptions.RayError as error:
            raise StudyError(_why(one, str(error))) from error
        yield one, found


def _why(one: Range, said: str) -> str:
    """What a failed Ray task means for the user."""
    if missing := re.search(r"No module named '([\w.]+)'", said):
        return f"the machines of the Ray cluster lack {missing[1]}: there, in Ray's Python, `pip install 'phalanx-training[study,ray]'`."
    if "No such file" in said or "FileNotFoundError" in said:
        return f"{one.path}: a machine of the Ray cluster does not have it. The dump must lie under this path on every machine."
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "no reason given")
    return f"{one.path}, bytes {one.start} to {one.end}: the Ray task failed ({last[:400]})."
