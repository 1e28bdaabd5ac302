"""Traces of synthetic jobs for tests, written by the benchmark's generator and read by the real readers."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from phalanx.model.trace import Traces
from phalanx.sources.inputs import find_inputs
from phalanx.sources.traces import find_traces, read_traces

BENCH = Path(__file__).parent.parent / "bench"


def bench_module(name: str) -> Any:
    """A module of the benchmarks, which are no package."""
    sys.path.insert(0, str(BENCH))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(BENCH))


def write_dumps(folder: Path, fault: str, rank: int = 12, entries: int = 260) -> None:
    """The dumps of a job of 16 ranks with a fault, about two steps long."""
    bench_module("make_traces").write_job(folder, 16, fault, entries=entries, rank=rank)


def read_folder(folder: Path) -> Traces:
    """What the readers make of a folder."""
    inputs, _ = find_inputs([str(folder)])
    found, _ = find_traces(inputs)
    return read_traces(found)[0]


@cache
def made(fault: str, rank: int = 12, entries: int = 260) -> Traces:
    """The traces of such a job; the same for every test that asks."""
    with TemporaryDirectory() as folder:
        write_dumps(Path(folder) / "dumps", fault, rank, entries)
        return read_folder(Path(folder) / "dumps")
