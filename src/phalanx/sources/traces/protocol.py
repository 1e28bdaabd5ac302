"""What a reader of collective traces offers, and what it hands over: the calls of one rank, in columns."""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, BinaryIO, Protocol, cast

HEAD = 4096  # bytes of a file, decompressed, that a reader is shown to recognise it
# What differs between calls of one kind. `collective` and `pairwise` are both counts, one of which is the call's `seq`.
ROW_NUMBERS = ("order", "collective", "pairwise", "created_ns", "started_ns", "completed_ns")
NO_NUMBER = -(1 << 63)  # stands in rows, which are plain arrays, for what the kind has; no count and no time is so low


@dataclass(frozen=True, slots=True)
class TraceInput:
    """A file to read: the name to show, who reads it, and its path or, where it has none, its bytes."""

    name: str
    reader: str
    path: str | None = None
    data: bytes = b""

    @property
    def written_ns(self) -> int | None:
        """When the file was last written; None for what is in no file."""
        try:
            return Path(self.path).stat().st_mtime_ns if self.path is not None else None
        except OSError:
            return None

    def open(self) -> BinaryIO:
        """A stream of its bytes as they are stored."""
        return Path(self.path).open("rb") if self.path is not None else io.BytesIO(self.data)


@dataclass(frozen=True, slots=True)
class Group:
    """A process group as one file tells of it. `members` are global ranks, in the group's own order; None: not told."""

    name: str
    description: str = ""
    members: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """What a rank says of a group as a whole: numbers of its last collectives. `group` is a position in `groups`."""

    group: int
    last_enqueued: int | None = None
    last_started: int | None = None
    last_completed: int | None = None


@dataclass(slots=True)
class RankTrace:
    """The calls of one rank, as one file tells of them.

    `columns` holds lists of one length, under names of `phalanx.model.trace.CALL_COLUMNS` other than `rank`. In `group` stand
    positions in `groups`; a column that is left out is null, but for `order`, which then counts up, and `state`, which is
    then COMPLETED. Where `rows` is given, `columns` describes kinds of calls, and `rows` tells for every call its `kind`, a
    position in `columns`, and those of ROW_NUMBERS that its kind leaves null, else NO_NUMBER. `rank` is None where the content does not tell it: then the file's name does. Clocks are the rank's own.
    """

    form: str
    rank: int | None = None
    groups: Sequence[Group] = ()
    columns: dict[str, list[Any]] = field(default_factory=dict)
    rows: dict[str, array[int]] | None = None
    status: Sequence[GroupStatus] = ()
    dropped: int = 0
    truncated: bool = False
    host: str | None = None
    world_size: int | None = None
    gone: Sequence[tuple[int, str]] = ()  # ranks that a report calls dead or unreachable, and where each was
    notes: Sequence[tuple[str, str]] = ()  # what of the file could not be judged, and what that would need


class UnreadableError(Exception):
    """A file that its reader will not or cannot read: why, and what it would need."""

    def __init__(self, why: str, needs: str = "an undamaged copy of the file") -> None:
        super().__init__(why)
        self.needs = needs


class TraceReader(Protocol):
    """What a module of `readers/` offers. It is found by scanning; nothing else needs to be edited."""

    __name__: str
    NAME: str  # in people's words: `flight recorder`

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file of this name that begins so is this reader's; `head` is decompressed and may be cut anywhere."""

    def read(self, name: str, data: bytes) -> Iterable[RankTrace]:
        """What the file tells, one item a rank. Raises UnreadableError; other exceptions are taken for damage of the file."""


@cache
def load_trace_readers() -> tuple[TraceReader, ...]:
    """Every reader of `readers/`, by name of its module."""
    package = import_module("phalanx.sources.traces.readers")
    names = sorted(module.name for module in iter_modules(package.__path__))
    return tuple(cast(TraceReader, import_module(f"{package.__name__}.{name}")) for name in names)


def reader_of(name: str, head: bytes) -> TraceReader | None:
    """The reader that recognises a file, if any does."""
    return next((reader for reader in load_trace_readers() if reader.recognises(name, head)), None)


def reader_named(name: str) -> TraceReader:
    """The reader of this NAME."""
    return next(reader for reader in load_trace_readers() if name == reader.NAME)
