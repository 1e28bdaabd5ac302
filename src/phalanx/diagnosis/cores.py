"""Large inputs on all cores: files are read by several processes, and what they found is put together in the order of the files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from phalanx.sources import Input, Observations
from phalanx.sources.patience import UNLIMITED, Patience

LEAST = 256 << 20  # bytes from which on starting processes pays
Part = Sequence[tuple[str, str]]  # names and paths


def parts_of(inputs: Sequence[Input], cores: int | None = None, least: int = LEAST) -> list[list[Input]]:
    """The inputs in as many parts of like size as there are cores; one part where that does not pay."""
    cores = cores or len(os.sched_getaffinity(0))
    sizes = {one.name: one.path.stat().st_size for one in inputs if one.path is not None}
    if cores < 2 or len(sizes) < len(inputs) or len(inputs) < 2 or sum(sizes.values()) < least:
        return [list(inputs)]
    parts: list[list[Input]] = [[] for _ in range(min(cores, len(inputs)))]
    loads = [0] * len(parts)
    for one in sorted(inputs, key=lambda one: -sizes[one.name]):
        least_busy = loads.index(min(loads))
        parts[least_busy].append(one)
        loads[least_busy] += sizes[one.name]
    return parts


def read_on_all_cores(
    parts: Sequence[Sequence[Input]],
    names: Sequence[str],
    progress: Callable[[int], None] | None = None,
    patience: Patience = UNLIMITED,
) -> Observations:
    """Each part in a process of its own, with all rules; `progress` is told of a part when it is read."""
    import multiprocessing  # here: most diagnoses are small, and must start in a moment
    from concurrent.futures import ProcessPoolExecutor, as_completed

    from phalanx.sources.shared import from_json, joined

    found = []
    # a fresh interpreter: the progress bar of this one has a thread, with which forking is not safe
    with ProcessPoolExecutor(len(parts), mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {
            pool.submit(_read, [(one.name, str(one.path)) for one in part], list(names), patience) for part in parts
        }
        for done in as_completed(running):
            text, size = done.result()
            found.append(from_json(json.loads(text)))
            if progress is not None:
                progress(size)
    return joined(found, names)


def _read(part: Part, names: Sequence[str], patience: Patience = UNLIMITED) -> tuple[str, int]:
    from phalanx.diagnosis import collector_of_rules
    from phalanx.sources.shared import settled, to_json

    inputs = [Input(name, _opener(path), Path(path)) for name, path in part]
    seen = collector_of_rules().collect(inputs, None, names, patience)
    return json.dumps(to_json(settled(seen))), sum(Path(path).stat().st_size for _, path in part)


def _opener(path: str) -> Callable[[], BinaryIO]:
    return lambda: Path(path).open("rb")
