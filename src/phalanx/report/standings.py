"""Where every rank stands in its collectives, ranks that stand alike folded into one line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from phalanx.model.trace import CallState, Traces
from phalanx.report.slots import labelled_groups

_WORDS = {
    CallState.SCHEDULED: "queued, not started",
    CallState.STARTED: "started, not ended",
    CallState.COMPLETED: "ended",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """Ranks that stand at the same call of groups of the same kind, in the same state."""

    ranks: tuple[int, ...]
    op: str
    label: str  # of the group
    groups: int  # how many groups of that label
    seqs: tuple[int, int]  # the least and the greatest number
    state: CallState
    place: str
    outstanding: int  # calls that did not end, at most, on one of the ranks

    @property
    def words(self) -> str:
        """How far the call came."""
        return _WORDS[self.state]


def find_standings(traces: Traces) -> list[Standing]:
    """For each rank the first call that did not end, or else its last one; the smallest crowd first."""
    import polars as pl

    open_calls = pl.col("state") != int(CallState.COMPLETED)
    first_open = (
        traces.calls.lazy().filter(open_calls).group_by("rank").agg(pl.col("order").min(), outstanding=pl.len())
    )
    last = traces.calls.lazy().group_by("rank").agg(newest=pl.col("order").max())
    wanted = last.join(first_open, on="rank", how="left").select(
        "rank", pl.coalesce("order", "newest").alias("order"), pl.col("outstanding").fill_null(0)
    )
    columns = ["rank", "order", "group", "op", "seq", "state", "place", "outstanding"]
    stands = traces.calls.lazy().join(wanted, on=["rank", "order"], how="inner").select(columns).collect()
    stands = stands.join(labelled_groups(traces).select("group", "label"), on="group", how="left")
    alike = [pl.col("op").cast(pl.String), "label", "state", pl.col("place").cast(pl.String)]
    folded = stands.group_by(alike).agg(
        "rank",
        pl.col("group").n_unique(),
        pl.col("outstanding").max(),
        least=pl.col("seq").min(),
        most=pl.col("seq").max(),
    )
    found = [_standing(row) for row in folded.iter_rows(named=True)]
    return sorted(found, key=lambda one: (len(one.ranks), one.ranks))


def _standing(row: dict[str, object]) -> Standing:
    ranks = sorted(row["rank"])  # type: ignore[call-overload]
    state = CallState(int(row["state"]))  # type: ignore[call-overload]
    seqs = (int(row["least"]), int(row["most"]))  # type: ignore[call-overload]
    known = str(row["op"] or "?"), str(row["label"] or "?"), int(row["group"])  # type: ignore[call-overload]
    return Standing(tuple(ranks), *known, seqs, state, str(row["place"] or ""), int(row["outstanding"]))  # type: ignore[call-overload]


def absent_ranks(traces: Traces) -> tuple[int, ...]:
    """Ranks that the groups or the size of the world tell of, and that left no trace."""
    members = (
        traces.groups.get_column("members").explode().drop_nulls().unique().to_list() if len(traces.groups) else []
    )
    expected = set(members) | set(range(traces.world_size or 0))
    present = set(traces.calls.get_column("rank").unique().to_list()) | traces.ranks
    return tuple(sorted(expected - present))


def in_words(ranks: Iterable[int], most: int = 8) -> str:
    """`0–3, 7, 9–12`; cut after `most` stretches."""
    stretches: list[list[int]] = []
    for rank in sorted(ranks):
        if stretches and rank == stretches[-1][1] + 1:
            stretches[-1][1] = rank
        else:
            stretches.append([rank, rank])
    shown = [
        str(low) if low == high else f"{low}–{high}" if high > low + 1 else f"{low}, {high}" for low, high in stretches
    ]
    return ", ".join(shown[:most]) + (
        f", … ({sum(high - low + 1 for low, high in stretches)} in all)" if len(shown) > most else ""
    )
