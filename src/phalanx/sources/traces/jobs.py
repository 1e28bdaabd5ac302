"""Sorts what was read into jobs: files of one job belong together, leftovers of another one beside it do not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from phalanx.model.trace import CALL_COLUMNS, GROUP_COLUMNS, STATUS_COLUMNS, TraceFile, Traces
from phalanx.model.world import Unchecked
from phalanx.sources.text import NUMBER
from phalanx.sources.traces.batch import FileFacts
from phalanx.sources.traces.pool import Table
from phalanx.sources.traces.protocol import Group

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class _Piece:
    """One rank of one file, and where its calls are."""

    table: int
    position: int
    facts: FileFacts


@dataclass(slots=True)
class _Job:
    world_size: int | None = None
    pieces: dict[int, _Piece] = field(default_factory=dict)


def traces_of(tables: Sequence[Table]) -> list[Traces]:
    """The jobs found, the one with most ranks first, and among equals the one that ran last."""
    pieces = [
        _Piece(number, position, facts)
        for number, table in enumerate(tables)
        for position, facts in enumerate(table.files)
    ]
    jobs: list[_Job] = []
    for _, members in sorted(_sets(pieces).items()):
        _put(jobs, members)
    jobs.sort(key=lambda job: (len(job.pieces), max(one.facts.times[1] for one in job.pieces.values())), reverse=True)
    said = tuple(Unchecked(what, needs) for table in tables for what, needs in table.unchecked)
    made = [_traces(tables, job, said if job is jobs[0] else ()) for job in jobs]
    return made or ([_nothing(said)] if said else [])


def _sets(pieces: Iterable[_Piece]) -> dict[tuple[str, int], list[_Piece]]:
    """Files whose names differ in the rank's number only and that tell of a world of the same size."""
    found: dict[tuple[str, int], list[_Piece]] = defaultdict(list)
    for piece in pieces:
        found[(_template(piece.facts), piece.facts.world_size or 0)].append(piece)
    return found


def _template(facts: FileFacts) -> str:
    """The name without the rank: the last number in it that is the rank's."""
    matches = [match for match in NUMBER.finditer(facts.name) if int(match[0]) == facts.rank]
    if not matches:
        return facts.name
    return facts.name[: matches[-1].start()] + "#" + facts.name[matches[-1].end() :]


def _put(jobs: list[_Job], members: list[_Piece]) -> None:
    """Add a set to the first job it can be of, else make it one of its own."""
    size = next((one.facts.world_size for one in members if one.facts.world_size), None)
    for job in jobs:
        if job.world_size and size and job.world_size != size:
            continue
        if all(_fits(job.pieces.get(one.facts.rank), one) for one in members):
            break
    else:
        job = _Job()
        jobs.append(job)
    job.world_size = job.world_size or size
    for one in members:
        known = job.pieces.get(one.facts.rank)
        job.pieces[one.facts.rank] = one if known is None else _fuller(known, one)


def _fits(known: _Piece | None, other: _Piece) -> bool:
    """Two files of one rank are of one process if its later calls, by number, are also later by its clock."""
    if known is None or not known.facts.calls or not other.facts.calls:
        return True
    (first, last), (other_first, other_last) = known.facts.orders, other.facts.orders
    (begin, end), (other_begin, other_end) = known.facts.times, other.facts.times
    if last < other_first or other_last < first:
        return (last < other_first) == (end < other_begin)
    return begin <= other_end and other_begin <= end


def _fuller(one: _Piece, other: _Piece) -> _Piece:
    """The later of two snapshots; of the same one the pickle, which has the stacks that JSON leaves out."""

    def rank(piece: _Piece) -> tuple[int, int, bool]:
        return piece.facts.orders[1], piece.facts.calls, not piece.facts.name.endswith(".json")

    return max(one, other, key=rank)


def _nothing(said: tuple[Unchecked, ...]) -> Traces:
    return Traces(_empty(CALL_COLUMNS), _empty(GROUP_COLUMNS), _empty(STATUS_COLUMNS), (), None, said)


def _empty(columns: dict[str, str]) -> polars.DataFrame:
    import polars as pl

    return pl.DataFrame(schema={name: _type(kind) for name, kind in columns.items()})


def _type(kind: str) -> polars.DataType:
    import polars as pl

    return pl.List(pl.Int32) if kind == "List(Int32)" else getattr(pl, kind)()


def _traces(tables: Sequence[Table], job: _Job, said: tuple[Unchecked, ...]) -> Traces:
    import polars as pl

    groups = _Groups()
    frames, status = [], []
    by_table: dict[int, list[_Piece]] = defaultdict(list)
    for piece in job.pieces.values():
        by_table[piece.table].append(piece)
    for number, pieces in sorted(by_table.items()):
        table = tables[number]
        places = groups.add(table.groups)
        kept = {piece.position: piece.facts.rank for piece in pieces}
        ranks = pl.Series([kept.get(place) for place in range(len(table.files))], dtype=pl.Int32)
        numbers = pl.Series(places, dtype=pl.UInt32)
        frame = table.calls.with_columns(
            rank=ranks.gather(table.calls["rank"]), group=numbers.gather(table.calls["group"])
        )
        frames.append(frame.filter(pl.col("rank").is_not_null()) if len(kept) < len(table.files) else frame)
        status += [
            (facts.rank, places[row[0]], *row[1:]) for facts in (one.facts for one in pieces) for row in facts.status
        ]
    known = groups.named()
    kinds = {name: _type(kind) for name, kind in STATUS_COLUMNS.items()}
    calls = pl.concat(frames, rechunk=False)
    if any(old != new for old, new in enumerate(known.numbers)):
        calls = calls.with_columns(group=pl.Series(known.numbers, dtype=pl.UInt32).gather(calls["group"]))
    return Traces(
        calls=calls,
        groups=known.frame,
        status=pl.DataFrame(
            [(rank, known.numbers[group], *rest) for rank, group, *rest in status], schema=kinds, orient="row"
        ),
        files=tuple(_file(job.pieces[rank].facts) for rank in sorted(job.pieces)),
        world_size=job.world_size,
        unchecked=said,
    )


def _file(facts: FileFacts) -> TraceFile:
    said = (facts.form, facts.calls, facts.dropped, facts.truncated, facts.host, facts.written_ns)
    return TraceFile(facts.name, facts.rank, *said, tuple((rank, where) for rank, where in facts.gone))


@dataclass(frozen=True, slots=True)
class _Known:
    frame: polars.DataFrame
    numbers: list[int]


class _Groups:
    """The groups of a job, each once."""

    def __init__(self) -> None:
        self._numbers: dict[Group, int] = {}

    def add(self, groups: Sequence[Group]) -> list[int]:
        """The job's numbers of a table's groups."""
        return [self._numbers.setdefault(group, len(self._numbers)) for group in groups]

    def named(self) -> _Known:
        """The groups' table. A group of which a file lists no members is the one of its name that another file lists."""
        import polars as pl

        listed: dict[str, list[Group]] = defaultdict(list)
        for group in self._numbers:
            if group.members is not None:
                listed[group.name].append(group)
        kept: dict[Group, int] = {}
        numbers = []
        for group in self._numbers:
            same = listed[group.name] if group.members is None else []
            group = same[0] if len(same) == 1 else group
            numbers.append(kept.setdefault(group, len(kept)))
        rows = [
            (number, one.name, one.description, None if one.members is None else list(one.members))
            for one, number in kept.items()
        ]
        kinds = {name: _type(kind) for name, kind in GROUP_COLUMNS.items()}
        return _Known(pl.DataFrame(rows, schema=kinds, orient="row"), numbers)
