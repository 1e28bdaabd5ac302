"""Collective traces: what each rank called, in which group, in what order. Files in, tables out, one set a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from phalanx.sources.inputs import DAMAGE, Input, plain_stream
from phalanx.sources.traces.protocol import HEAD, TraceInput, reader_of

if TYPE_CHECKING:
    from phalanx.model.trace import Traces

__all__ = ["find_traces", "read_traces"]
_MOMENTS = frozenset({"nccl ras"})  # readers of what a job looks like at one moment
_MOST = 32 << 20  # bytes of such a report


def find_traces(inputs: Sequence[Input]) -> tuple[list[TraceInput], list[Input]]:
    """The inputs that are traces, and the others. Standard input can be read once only, so it is no trace."""
    traces: list[TraceInput] = []
    others: list[Input] = []
    moments: dict[tuple[str, bool], list[Input]] = {}  # of one reader and form, text or JSON
    for one in inputs:
        head = b"" if one.is_pipe else _head(one)
        reader = reader_of(one.name, head) if head else None
        if reader is None:
            others.append(one)
        elif reader.NAME in _MOMENTS:
            moments.setdefault((reader.NAME, head.lstrip()[:1] == b"{"), []).append(one)
        elif one.path is not None:
            traces.append(TraceInput(one.name, reader.NAME, str(one.path)))
        else:
            with one.open() as file:
                traces.append(TraceInput(one.name, reader.NAME, data=file.read()))
    return [*traces, *(_joined(reader, found) for (reader, _), found in moments.items())], others


def _joined(reader: str, reports: list[Input]) -> TraceInput:
    """Reports of one moment each as one input, the oldest first: two of them tell who did not move."""
    reports.sort(key=lambda one: (one.path.stat().st_mtime if one.path is not None else 0.0, one.name))
    data = []
    for one in reports[-2:]:
        with suppress(*DAMAGE), one.open() as raw:
            data.append(plain_stream(raw).read(_MOST))
    return TraceInput(reports[-1].name, reader, data=b"\n".join(data))


def read_traces(inputs: Sequence[TraceInput], progress: Callable[[int], None] | None = None) -> list[Traces]:
    """The jobs whose traces these are, the largest first; `progress` is told the number of bytes read as they are read."""
    # Loaded here: worker processes import this package, and read files only.
    from phalanx.sources.traces.jobs import traces_of
    from phalanx.sources.traces.pool import read_tables

    return traces_of(read_tables(inputs, progress)) if inputs else []


def _head(one: Input) -> bytes:
    try:
        with one.open() as raw:
            return plain_stream(raw).read(HEAD)
    except DAMAGE:
        return b""
