"""Collective traces: what each rank called, in which group, in what order. Files in, tables out, one set a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from phalanx.sources.inputs import DAMAGE, Input, plain_stream
from phalanx.sources.traces.protocol import HEAD, TraceInput, reader_of

if TYPE_CHECKING:
    from phalanx.model.trace import Traces

__all__ = ["find_traces", "read_traces"]


def find_traces(inputs: Sequence[Input]) -> tuple[list[TraceInput], list[Input]]:
    """The inputs that are traces, and the others. Standard input can be read once only, so it is no trace."""
    traces: list[TraceInput] = []
    others: list[Input] = []
    for one in inputs:
        reader = reader_of(one.name, _head(one)) if one.name != "<stdin>" else None
        if reader is None:
            others.append(one)
        elif one.path is not None:
            traces.append(TraceInput(one.name, reader.NAME, str(one.path)))
        else:
            with one.open() as file:
                traces.append(TraceInput(one.name, reader.NAME, data=file.read()))
    return traces, others


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
