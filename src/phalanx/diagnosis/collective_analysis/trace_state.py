"""Where each rank stands in each of its groups: what it has entered, what it has completed, what is outstanding.

Small tables, a row a rank and group, drawn from the twenty million rows of a large job.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import polars as pl

from phalanx.model.trace import CallState, Traces

_DONE = int(CallState.COMPLETED)


@dataclass(frozen=True, slots=True)
class Call:
    """One outstanding call of one rank."""

    rank: int
    order: int
    group: int
    seq: int
    op: str
    peer: int | None
    state: int
    place: str | None
    is_p2p: bool = False


@dataclass(frozen=True, slots=True)
class Position:
    """How far a rank came in a group, by the numbers of its collectives; 0 where it has none."""

    entered: int
    done: int


@dataclass(frozen=True, slots=True)
class TraceState:
    """The job at the moment of the dumps."""

    members: dict[int, tuple[int, ...]]  # by group
    labels: dict[int, str]
    kinds: dict[int, str]  # what a group is for, in the words of its maker; groups of one kind do alike
    world: frozenset[int]
    present: frozenset[int]  # ranks that left a trace
    cut: frozenset[int]  # of these, ranks whose trace breaks off: what it lacks they may well have called
    positions: dict[int, dict[int, Position]]  # by group, then rank
    pending: dict[int, list[Call]]  # by rank, collectives and point-to-point, in the order of issue

    def position(self, group: int, rank: int) -> Position:
        """Where a rank stands in a group."""
        return self.positions.get(group, {}).get(rank, Position(0, 0))

    def first_pending(self, rank: int) -> list[Call]:
        """A rank's outstanding calls, of each group's collectives the first only."""
        found: dict[object, Call] = {}
        for call in self.pending.get(rank, ()):
            found.setdefault(call.group if not call.is_p2p else (call.group, call.op, call.peer), call)
        return list(found.values())


def describe(state: TraceState, call: Call) -> str:
    """`all_reduce #14 of group default_pg`, `recv from rank 3 in group 7`."""
    label = state.labels[call.group]
    if call.is_p2p:
        return f"{call.op} {'to' if call.op == 'send' else 'from'} rank {call.peer} in group {label}"
    return f"{call.op} #{call.seq} of group {label}"


def trace_state_of(traces: Traces) -> TraceState:
    """Draw the tables."""
    members, labels = _groups(traces)
    world = frozenset(traces.ranks).union(*members.values(), range(traces.world_size or 0))
    positions = _positions(traces)
    kinds = dict(traces.groups.select("group", "description").iter_rows())
    cut = frozenset(file.rank for file in traces.files if file.truncated)
    return TraceState(members, labels, kinds, world, traces.ranks, cut, positions, _pending(traces, positions))


def _groups(traces: Traces) -> tuple[dict[int, tuple[int, ...]], dict[int, str]]:
    """Members and names. Where no file lists a group's members, they are all ranks, or those that were seen in it."""
    members: dict[int, tuple[int, ...]] = {}
    labels: dict[int, str] = {}
    unlisted = []
    for row in traces.groups.iter_rows(named=True):
        words = row["description"]
        labels[row["group"]] = words if words and words not in ("undefined", row["name"]) else f"{row['name']}"
        if row["members"] is not None:
            members[row["group"]] = tuple(row["members"])
        elif words == "default_pg" or (row["name"] == "0" and not words):
            members[row["group"]] = tuple(sorted(traces.ranks | set(range(traces.world_size or 0))))
        else:
            unlisted.append(row["group"])
    if unlisted:
        seen = traces.calls.filter(pl.col("group").is_in(unlisted)).select("group", "rank").unique()
        by_group: dict[int, list[int]] = defaultdict(list)
        for group, rank in seen.sort("group", "rank").iter_rows():
            by_group[group].append(rank)
        members.update({group: tuple(by_group[group]) for group in unlisted})
    double = (
        [words for words in labels.values() if list(labels.values()).count(words) > 1] if len(labels) < 200 else None
    )
    names = dict(traces.groups.select("group", "name").iter_rows())
    for group, words in labels.items():
        if (double is None or words in double) and words != names[group]:
            labels[group] = f"{words} ({names[group]})"
    return members, labels


def _positions(traces: Traces) -> dict[int, dict[int, Position]]:
    collectives = traces.calls.lazy().filter(~pl.col("p2p") & pl.col("seq").is_not_null())
    done = pl.col("seq").filter(pl.col("state") == _DONE).max().fill_null(0)
    # What a ring dropped or a dump of the active calls leaves out came before its first row, and was completed.
    before = pl.col("seq").min() - 1
    rows = (
        collectives.group_by("group", "rank")
        .agg(entered=pl.col("seq").max(), done=pl.max_horizontal(done, before))
        .collect()
    )
    found: dict[int, dict[int, Position]] = defaultdict(dict)
    for group, rank, entered, completed in rows.iter_rows():
        found[group][rank] = Position(entered, completed)
    for group, rank, entered, completed in _statuses(traces).iter_rows():
        known = found[group].get(rank, Position(0, 0))
        found[group][rank] = Position(
            max(known.entered, entered), max(known.done, min(completed, max(known.entered, entered)))
        )
    return found


def _statuses(traces: Traces) -> pl.DataFrame:
    """What ranks say of their groups. In groups with point-to-point calls the numbers count both kinds: they are left out."""
    mixed = traces.calls.lazy().filter(pl.col("p2p")).select("group").unique().collect()["group"]
    return (
        traces.status.filter(~pl.col("group").is_in(mixed.implode()))
        .select("group", "rank", pl.col("last_enqueued").fill_null(0), pl.col("last_completed").fill_null(0))
        .filter(pl.col("last_enqueued") > 0)
    )


def _pending(traces: Traces, positions: dict[int, dict[int, Position]]) -> dict[int, list[Call]]:
    """Outstanding calls. Collectives of a group complete in order, so one below a completed one is not outstanding."""
    open_calls = traces.calls.lazy().filter(pl.col("state") != _DONE)
    settled = _settled(traces)
    columns = ["rank", "order", "group", "seq", "op", "peer", "state", "place", "p2p"]
    found: dict[int, list[Call]] = defaultdict(list)
    for row in open_calls.select(columns).sort("rank", "order").collect().iter_rows(named=True):
        is_p2p = row.pop("p2p")
        if row["seq"] is None:
            continue
        if is_p2p:
            if row["order"] <= settled.get((row["rank"], row["group"], row["op"], row["peer"]), -1):
                continue
        elif row["seq"] <= positions.get(row["group"], {}).get(row["rank"], Position(0, 0)).done:
            continue
        found[row["rank"]].append(Call(is_p2p=is_p2p, **row))
    return found


def _settled(traces: Traces) -> dict[tuple[int, int, str, int | None], int]:
    """The last completed call of each rank to and from each peer: what was issued before it is over, too."""
    last = (
        traces.calls.lazy()
        .filter(pl.col("p2p") & (pl.col("state") == _DONE))
        .group_by("rank", "group", "op", "peer")
        .agg(pl.col("order").max())
        .collect()
    )
    return {(rank, group, op, peer): order for rank, group, op, peer, order in last.iter_rows()}
