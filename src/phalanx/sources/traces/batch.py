"""Reads trace files one after the other into one table: the part that worker processes do, and small jobs in place."""

from __future__ import annotations

import gc
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from phalanx.model.ranks import LARGEST_WORLD
from phalanx.model.trace import CALL_COLUMNS, CallState
from phalanx.sources.inputs import DAMAGE, plain_stream
from phalanx.sources.traces.protocol import (
    NO_NUMBER,
    ROW_NUMBERS,
    Group,
    RankTrace,
    TraceInput,
    UnreadableError,
    reader_named,
)
from phalanx.sources.traces.unpickling import check_memo

if TYPE_CHECKING:
    import polars

LARGEST = 1 << 30  # bytes of one file, decompressed: a dump of 2,000 calls has about one thousandth of that
_LATEST = (1 << 62) - 1  # nanoseconds
_RANK = re.compile(r"rank[-_.=]?(\d{1,6})(?!\d)", re.I)
_NUMBER = re.compile(r"\d{1,6}")


@dataclass(slots=True)
class FileFacts:
    """What was learned of one rank from one file, beside its calls."""

    name: str
    rank: int
    form: str
    calls: int
    dropped: int
    truncated: bool
    host: str | None
    world_size: int | None
    status: list[tuple[int, int | None, int | None, int | None]]  # group (position in the batch's), numbers
    orders: tuple[int, int]  # of its first call and its last
    times: tuple[int, int]  # when these were made, by the rank's clock
    first_kind: int  # where its kinds of calls begin in the batch's columns
    written_ns: int | None = None
    gone: Sequence[tuple[int, str]] = ()


@dataclass(slots=True)
class Batch:
    """Kinds of calls of several files as columns, and for each call its kind and its numbers; `group` is a position in `groups`."""

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in CALL_COLUMNS if name != "rank"})
    kinds: array[int] = field(default_factory=lambda: array("q"))
    rows: dict[str, array[int]] = field(default_factory=lambda: {name: array("q") for name in ROW_NUMBERS})
    groups: list[Group] = field(default_factory=list)
    files: list[FileFacts] = field(default_factory=list)
    unchecked: list[tuple[str, str]] = field(default_factory=list)
    positions: dict[Group, int] = field(default_factory=dict)

    def position_of(self, group: Group) -> int:
        """The group's place in `groups`, where it is put if it is new."""
        if group not in self.positions:
            self.positions[group] = len(self.groups)
            self.groups.append(group)
        return self.positions[group]

    def add(self, name: str, trace: RankTrace, written_ns: int | None = None) -> None:
        """Take in what one file tells of one rank."""
        rank = trace.rank if trace.rank is not None else rank_of_name(name)
        if rank is None or not 0 <= rank <= LARGEST_WORLD:
            self.unchecked.append((f"{name}: nothing tells whose trace it is", "the rank in its name (rank3.json)"))
            return
        places = [self.position_of(_plain(group)) for group in trace.groups]
        kinds = max((len(column) for column in trace.columns.values()), default=0)
        first = len(self.columns["order"])
        for column in self.columns:
            given = trace.columns.get(column)
            if column == "group":
                given = [places[position] for position in given or [0] * kinds]
            elif given is None:
                fill = CallState.COMPLETED if column == "state" else False if column == "p2p" else None
                given = list(range(kinds)) if column == "order" else [fill] * kinds
            self.columns[column].extend(given)
        length = kinds
        if trace.rows is None:
            self.kinds.extend(range(kinds))
            for number in ROW_NUMBERS:
                self.rows[number].extend(array("q", [NO_NUMBER]) * kinds)
        else:
            length = len(trace.rows["kind"])
            self.kinds.extend(trace.rows["kind"])
            for number in ROW_NUMBERS:
                self.rows[number].extend(trace.rows[number])
        numbers = ((one.group, one.last_enqueued, one.last_started, one.last_completed) for one in trace.status)
        status = [(places[group], *map(_fitting, counts)) for group, *counts in numbers]
        facts = (trace.form, length, trace.dropped, trace.truncated, _fitting(trace.host), trace.world_size)
        # The first call and the last are kinds of their own, so the columns have their numbers also where there are rows.
        spans = (_span(trace.columns.get("order") or range(kinds)), _span(trace.columns.get("created_ns") or ()))
        self.files.append(FileFacts(name, rank, *facts, status, *spans, first, written_ns, trace.gone))
        self.unchecked.extend(trace.notes)

    def arrays(self) -> list[array[int]]:
        """The calls as plain arrays of one length: kinds, then the numbers of each row."""
        return [self.kinds, *(self.rows[name] for name in ROW_NUMBERS)]

    def take_arrays(self, raw: bytes) -> None:
        """Put back what `arrays` gave, from its bytes. Raises ValueError if these are not as many as they should be."""
        arrays = self.arrays()
        length, rest = divmod(len(raw), len(arrays) * self.kinds.itemsize)
        if rest or length != sum(file.calls for file in self.files):
            raise ValueError("the arrays do not fit the files")
        step = length * self.kinds.itemsize
        for number, one in enumerate(arrays):
            one.frombytes(memoryview(raw)[number * step : (number + 1) * step])

    def frame(self) -> polars.DataFrame:
        """The calls as a table; what does not fit its type is null."""
        import polars as pl

        kinds = pl.DataFrame([_series(name, self.columns[name], CALL_COLUMNS[name]) for name in self.columns])
        rows = pl.DataFrame({name: _numbers(self.rows[name]) for name in ROW_NUMBERS})
        rows = rows.select(pl.when(pl.all() != NO_NUMBER).then(pl.all()))
        lengths = pl.Series([file.calls for file in self.files], dtype=pl.UInt32)
        ranks = pl.int_range(len(self.files), dtype=pl.Int32, eager=True).repeat_by(lengths).explode()
        if not ranks.len():
            return pl.DataFrame(schema={name: getattr(pl, kind) for name, kind in CALL_COLUMNS.items()})
        firsts = pl.Series([file.first_kind for file in self.files], dtype=pl.Int64)
        calls = kinds[(_numbers(self.kinds) + firsts.gather(ranks)).cast(pl.UInt32)]
        times = [
            pl.coalesce(pl.when(rows[name].is_between(1, _LATEST)).then(rows[name]), pl.col(name))
            for name in ("created_ns", "started_ns", "completed_ns")
        ]
        number = pl.when("p2p").then(rows["pairwise"]).otherwise(rows["collective"])
        return calls.with_columns(
            *(one.alias(name) for one, name in zip(times, ("created_ns", "started_ns", "completed_ns"), strict=True)),
            ranks.alias("rank"),
            pl.coalesce(rows["order"], "order").alias("order"),
            pl.coalesce(number, "seq").alias("seq"),
        ).select(*CALL_COLUMNS)


def _numbers(values: array[int]) -> polars.Series:
    """An array as a column, its bytes as they are."""
    import polars as pl

    if not values:
        return pl.Series(dtype=pl.Int64)
    kind = pl.Array(pl.Int64, len(values))
    try:
        return pl.Series([values.tobytes()]).bin.reinterpret(dtype=kind, endianness=sys.byteorder).explode()
    except pl.exceptions.InvalidOperationError:  # Polars 1.30 cannot yet
        return pl.Series(values.tolist(), dtype=pl.Int64)


def _series(name: str, values: list[Any], kind: str) -> polars.Series:
    """A column. Most fit their type, which is quick; what does not becomes null, which takes a look at each."""
    import polars as pl

    try:
        return pl.Series(name, values, dtype=getattr(pl, kind))
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        fits = [_fitting(value) for value in values]
        return pl.Series(name, fits, dtype=getattr(pl, kind), strict=False)


def _plain(group: Group) -> Group:
    """The group as a table can hold it."""
    if group.name.isascii() and group.description.isascii() and max(group.members or (0,)) <= LARGEST_WORLD:
        return group
    members = None if group.members is None else tuple(one for one in group.members if one <= LARGEST_WORLD)
    return Group(_fitting(group.name), _fitting(group.description), members)


def _fitting(value: Any) -> Any:
    """What a dump from anywhere may hold and no column can: halves of characters, numbers beyond 64 bits."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return None if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def _span(values: Sequence[int | None]) -> tuple[int, int]:
    known = [value for value in (values[:1] + values[-1:] if isinstance(values, list) else values) if value is not None]
    return (min(known), max(known)) if known else (0, 0)


def rank_of_name(name: str) -> int | None:
    """`nccl_trace_rank_3`, `rank3/collectives-1.json`, `_dump_3`: the number behind `rank`, else the last one of the file's name."""
    if found := _RANK.findall(name):
        return int(found[-1])
    numbers = _NUMBER.findall(name.rsplit("/", 1)[-1])
    return int(numbers[-1]) if numbers else None


def read_batch(inputs: Iterable[TraceInput], bounded: bool) -> Batch:
    """Read files into one table. `bounded`: the process cannot take more memory than files of their size need."""
    batch = Batch()
    was_on = gc.isenabled()
    gc.disable()  # a dump is a hundred thousand small objects without a cycle: looking for one doubles the time
    try:
        for one in inputs:
            for what, needs in _read_one(batch, one, bounded):
                batch.unchecked.append((f"{one.name}: {what}", needs))
    finally:
        if was_on:
            gc.enable()
    return batch


def _read_one(batch: Batch, one: TraceInput, bounded: bool) -> Iterator[tuple[str, str]]:
    try:
        data, cut = _bytes_of(one)
        if not data:
            yield "empty", "the dump, if the rank wrote one"
            return
        if not bounded and data[:1] == b"\x80":
            check_memo(data)
        for trace in reader_named(one.reader).read(one.name, data):
            batch.add(one.name, trace, one.written_ns)
        if cut:
            yield "its compression breaks off; what came before was read", "the whole file"
    except UnreadableError as error:
        yield str(error), error.needs
    except (MemoryError, RecursionError):
        yield "refused: it asks for more memory than its size can need", "a dump as its program wrote it"
    except OSError as error:
        yield str(error.strerror or error), "a readable copy of it"
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, ArithmeticError) as error:
        yield f"damaged, or not what it seems ({type(error).__name__})", "an undamaged copy of the file"


def _bytes_of(one: TraceInput) -> tuple[bytes, bool]:
    """The file's bytes decompressed, and whether its compression broke off."""
    pieces: list[bytes] = []
    size = 0
    with one.open() as raw:
        try:
            stream = plain_stream(raw)  # looks into the decompressed bytes, which may be damaged from the first
            while piece := stream.read(1 << 20):
                pieces.append(piece)
                size += len(piece)
                if size > LARGEST:
                    raise UnreadableError(f"larger than {LARGEST >> 30} GiB", "a smaller one, of fewer calls")
        except DAMAGE:
            return b"".join(pieces), True
    return b"".join(pieces), False
