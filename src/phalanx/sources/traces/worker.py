"""The process in which many trace files are read: it has a bound on its memory, and hands back tables, not objects.

In on standard input, a line of JSON each: {"files": [[name, reader, path], …]}
Out on standard output: a line of JSON {"size": n, "columns": {…}, "groups": […], "files": […], "unchecked": […]}, then n bytes: the
kinds of the calls and their numbers, arrays of 64-bit integers one after the other. The table is made of them by whoever asked:
loading the tables' library here too would take longer than reading a hundred dumps.
"""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from phalanx.sources.traces.batch import read_batch
from phalanx.sources.traces.protocol import TraceInput

_ROOM = 1 << 30  # bytes a batch may take beside its files
_PER_BYTE = 24  # bytes of objects that a byte of a dump becomes at most, measured at 8 to 12
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5", b"BZ", b"\xfd7")


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        inputs = [TraceInput(name, reader, path) for name, reader, path in json.loads(line)["files"]]
        bounded = _bound_memory(max((_size(one) for one in inputs), default=0))
        batch = read_batch(inputs, bounded)
        arrays = batch.arrays()
        head = {
            "size": sum(len(one) * one.itemsize for one in arrays),
            "columns": batch.columns,
            "groups": [[group.name, group.description, group.members] for group in batch.groups],
            "files": [asdict(file) for file in batch.files],
            "unchecked": batch.unchecked,
        }
        answers.write(json.dumps(head, default=_unfit).encode() + b"\n")
        for one in arrays:
            answers.write(memoryview(one))
        answers.flush()


def _unfit(_value: object) -> None:
    """What only a hostile dump has among its columns becomes null, as it would in the table."""


def _size(one: TraceInput) -> int:
    """About how many bytes a file has when it is decompressed; 0 for one that is not there any more."""
    try:
        size = Path(one.path or "").stat().st_size
        with one.open() as file:
            return size * (16 if file.read(2) in _COMPRESSED else 1)
    except OSError:
        return 0


def _bound_memory(largest: int) -> bool:
    """Let the process grow by what the files need; False where the system has no such bound."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + _ROOM + _PER_BYTE * largest
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, OSError, ValueError):
        return False
    return True


if __name__ == "__main__":
    gc.disable()  # dumps are trees: there are no cycles to find
    serve(sys.stdin.buffer, sys.stdout.buffer)
