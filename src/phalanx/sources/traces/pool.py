"""Spreads trace files over worker processes and takes their tables in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from phalanx.sources.traces.batch import Batch, FileFacts, read_batch
from phalanx.sources.traces.protocol import Group, TraceInput

if TYPE_CHECKING:
    import polars

_IN_PLACE = 1 << 19  # bytes in all that are read without a process of their own: starting one costs more
_BATCH = 48 << 20  # bytes of one request
_LEAST_EACH = 96 << 20  # bytes that are worth one more process
# glibc would give the pages of each file's bytes back and ask for them again.
_ALLOCATION = {"MALLOC_MMAP_THRESHOLD_": str(1 << 26), "MALLOC_TRIM_THRESHOLD_": str(1 << 28)}
_NEEDS = "a dump as its program wrote it"


@dataclass(frozen=True, slots=True)
class Table:
    """What one request came back with; `rank` in the calls is a position in `files`, `group` one in `groups`."""

    calls: polars.DataFrame
    groups: list[Group]
    files: list[FileFacts]
    unchecked: list[tuple[str, str]]


def read_tables(inputs: Sequence[TraceInput], progress: Callable[[int], None] | None = None) -> list[Table]:
    """Read all files, in as many processes as their size is worth; tables come in the order of the files."""
    sizes = [_size(one) for one in inputs]
    if sum(sizes) <= _IN_PLACE and not any(_is_compressed(one) for one in inputs):
        return [_in_place(inputs)]
    with tempfile.TemporaryDirectory(prefix="phalanx-") as folder:
        stored = [_stored(one, Path(folder, str(number))) for number, one in enumerate(inputs)]
        requests: SimpleQueue[tuple[int, list[TraceInput], int]] = SimpleQueue()
        for number, (batch, size) in enumerate(_batches(stored, sizes)):
            requests.put((number, batch, size))
        count = max(1, min(os.cpu_count() or 1, sum(sizes) // _LEAST_EACH, requests.qsize()))
        answers: dict[int, Table] = {}
        with ThreadPoolExecutor(count) as threads:
            working = [threads.submit(_work, requests, answers, progress) for _ in range(count)]
            import_module("polars")  # what the tables are made with loads while the files are read
            for done in working:
                done.result()
    return [answers[number] for number in sorted(answers)]


def _in_place(inputs: Sequence[TraceInput]) -> Table:
    batch = read_batch(inputs, bounded=False)
    return Table(batch.frame(), batch.groups, batch.files, batch.unchecked)


def _size(one: TraceInput) -> int:
    try:
        return Path(one.path).stat().st_size if one.path is not None else len(one.data)
    except OSError:
        return 0


def _is_compressed(one: TraceInput) -> bool:
    try:
        with one.open() as file:
            return file.read(1) in (b"\x1f", b"\x28", b"B", b"\xfd")
    except OSError:
        return False


def _stored(one: TraceInput, path: Path) -> TraceInput:
    """An input that has a path, for another process to open."""
    if one.path is not None:
        return one
    path.write_bytes(one.data)
    return replace(one, path=str(path), data=b"")


def _batches(inputs: Sequence[TraceInput], sizes: Sequence[int]) -> Iterator[tuple[list[TraceInput], int]]:
    batch: list[TraceInput] = []
    total = 0
    for one, size in zip(inputs, sizes, strict=True):
        if batch and total + size > _BATCH:
            yield batch, total
            batch, total = [], 0
        batch.append(one)
        total += size
    if batch:
        yield batch, total


class _Worker:
    """One process, started again should it die."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._process is None:
            return
        with ExitStack() as closing:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    closing.callback(_close, stream)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def ask(self, batch: Sequence[TraceInput]) -> Table | None:
        """The batch's table; None if the process died over it."""
        if self._process is None:
            paths = os.pathsep.join(path for path in sys.path if path)
            environment = os.environ | {"PYTHONPATH": paths} | _ALLOCATION
            command = [sys.executable, "-S", "-m", "phalanx.sources.traces.worker"]  # the paths are given
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment
            )
        request = json.dumps({"files": [[one.name, one.reader, one.path] for one in batch]})
        try:
            return self._exchange(self._process, request.encode() + b"\n")
        except (OSError, ValueError, EOFError):
            self._end()
            return None

    @staticmethod
    def _exchange(process: subprocess.Popen[bytes], request: bytes) -> Table:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request)
        process.stdin.flush()
        head: dict[str, Any] = json.loads(process.stdout.readline())
        data = process.stdout.read(head["size"])
        if len(data) != head["size"]:
            raise EOFError
        batch = Batch(columns=head["columns"])
        batch.groups = [
            Group(name, about, tuple(members) if members else None) for name, about, members in head["groups"]
        ]
        batch.files = [FileFacts(**values) for values in head["files"]]
        for file in batch.files:  # JSON knows no tuples
            file.status = [(row[0], row[1], row[2], row[3]) for row in file.status]
        batch.unchecked = [(what, needs) for what, needs in head["unchecked"]]
        batch.take_arrays(data)
        return Table(batch.frame(), batch.groups, batch.files, batch.unchecked)


def _close(stream: Any) -> None:
    try:
        stream.close()
    except OSError:
        return


def _work(
    requests: SimpleQueue[tuple[int, list[TraceInput], int]],
    answers: dict[int, Table],
    progress: Callable[[int], None] | None,
) -> None:
    with _Worker() as worker:
        while True:
            try:
                number, batch, size = requests.get_nowait()
            except Empty:
                return
            answers[number] = worker.ask(batch) or _one_by_one(worker, batch)
            if progress is not None:
                progress(size)


def _one_by_one(worker: _Worker, batch: Sequence[TraceInput]) -> Table:
    """A process died over a batch: find the file it died of, and keep the others."""
    import polars as pl

    tables = [(one, worker.ask([one])) for one in batch]
    merged = _in_place([])
    calls = [merged.calls]
    for one, table in tables:
        if table is None:
            merged.unchecked.append((f"{one.name}: refused, the process that read it died of it", _NEEDS))
            continue
        groups = pl.Series([len(merged.groups) + place for place in range(len(table.groups))], dtype=pl.UInt32)
        moved = table.calls.with_columns(
            rank=pl.col("rank") + len(merged.files), group=groups.gather(table.calls["group"])
        )
        calls.append(moved)
        for file in table.files:
            file.status = [(place + len(merged.groups), *rest) for place, *rest in file.status]  # type: ignore[misc]
        merged.groups.extend(table.groups)
        merged.files.extend(table.files)
        merged.unchecked.extend(table.unchecked)
    return replace(merged, calls=pl.concat(calls))
