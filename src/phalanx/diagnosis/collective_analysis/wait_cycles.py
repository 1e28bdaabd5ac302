"""Ranks that wait for one another in a circle, and who of them left the common order.

Two calls stand crosswise when some members of both groups are in the one and others in the other. Those that belong to both groups
vote: most of them are right. Where they are as many, a rank that turned the order round against its own earlier steps, or made a call
there that it never made between such calls, is odd; else who came to the call of many otherwise than they did, with more or fewer
calls of its other groups behind it; else nobody. That others only wait in one of the calls says nothing: they would wait either way.
"""

from __future__ import annotations

import polars as pl

from phalanx.diagnosis.collective_analysis.observation import Break, Observation, observation
from phalanx.diagnosis.collective_analysis.trace_state import TraceState, describe
from phalanx.diagnosis.collective_analysis.waits import Graph, Op, Waits, graph_of
from phalanx.model.ranks import name_ranks
from phalanx.model.trace import Traces

_MOST_CYCLES = 64  # calls that are followed to see whether the waiting comes back to them
_MOST_JURORS = 8  # ranks of a side that are asked: in a job whose groups do alike all say the same
_LEAST_STEPS = 2  # earlier calls that show a rank's usual order


def find_cycles(traces: Traces, state: TraceState, waits: Waits) -> list[Observation]:
    """Every awaited rank waits itself. The few that a majority misses are odd, or nobody is."""
    graph = graph_of(state, waits)
    likeliest = sorted(waits.missing, key=lambda one: (-_share(waits, one), -len(waits.waiting[one]), one))
    cyclic = [op for op in likeliest[:_MOST_CYCLES] if _is_circular(graph, waits, op)]
    if not cyclic:
        return []
    op = min(cyclic, key=lambda one: (-_share(waits, one), -len(waits.waiting[one]), state.labels[one[0]], abs(one[1])))
    pairs = Graph({rank: [one for one in ops if one[1] < 0] for rank, ops in graph.calls_of.items()}, graph.wanted_by)
    inner = _inner_circle(pairs, frozenset(graph.calls_of)) or _inner_circle(graph, waits.missing[op])
    if inner and _share(waits, op) > 0.5:  # it stands by itself: the majority waits for it, and could not help
        ops = [one for one in sorted(waits.missing) if waits.waiting[one] & inner and waits.missing[one] & inner]
        if ops:
            return [_circle(state, waits, ops)]
    crossed = _crossed(traces, state, waits, op, cyclic)
    if crossed is not None:
        return [crossed]
    missing = tuple(sorted(_not_for_others(graph, waits.missing[op])))
    call, waiting = waits.calls[op], tuple(sorted(waits.waiting[op]))
    # A majority tells of ranks that wait for one of it. Over a longer way round everybody has some majority before it.
    if _share(waits, op) <= 0.5 or not any(graph.waits_for(rank) & waits.waiting[op] for rank in missing):
        return [_circle(state, waits, cyclic)]
    own = state.pending[missing[0]][0]
    kind = Break.PARTNER if own.is_p2p else Break.ORDER
    fields = {"own": describe(state, own), "call": describe(state, call)}
    return [observation(kind, missing, waiting, own.place, missing[0], **fields)]


def _circle(state: TraceState, waits: Waits, ops: list[Op]) -> Observation:
    ranks = sorted({rank for one in ops for rank in waits.missing[one] | waits.waiting[one]})
    calls = [f"{name_ranks(waits.waiting[one])} in {describe(state, waits.calls[one])}" for one in sorted(ops)[:4]]
    return observation(Break.CYCLE, (), tuple(ranks), waits.calls[ops[0]].place, ranks[0], calls=calls)


def _inner_circle(graph: Graph, ranks: frozenset[int]) -> frozenset[int]:
    """Those of some ranks that wait for one another also without anybody else."""
    among = {rank: graph.waits_for(rank) & ranks for rank in ranks}
    while victims := {rank for rank, wanted in among.items() if not wanted}:
        among = {rank: wanted - victims for rank, wanted in among.items() if rank not in victims}
    while outside := among.keys() - frozenset().union(*among.values()):  # they wait for the circle, not it for them
        among = {rank: wanted for rank, wanted in among.items() if rank not in outside}
    return frozenset(among)


def _not_for_others(graph: Graph, ranks: frozenset[int]) -> frozenset[int]:
    """Those of some ranks that do not merely wait for another of them."""
    return frozenset(rank for rank in ranks if not graph.waits_for(rank) & ranks - {rank}) or ranks


def _crossed(traces: Traces, state: TraceState, waits: Waits, op: Op, cyclic: list[Op]) -> Observation | None:
    """The odd ranks among members of two groups that are in one of two calls instead of the other; a circle if nothing tells."""
    tied: Observation | None = None
    for other in cyclic:
        if other == op or op[1] < 0 or other[1] < 0:
            continue
        in_op = waits.waiting[op] & waits.missing[other]
        in_other = waits.waiting[other] & waits.missing[op]
        if not in_op or not in_other:
            continue
        if len(in_op) == len(in_other):
            turned = [
                _turned_round(traces, ranks, *pair) for ranks, pair in ((in_op, (op, other)), (in_other, (other, op)))
            ]
            if turned[0] == turned[1]:
                turned = [_is_new(traces, in_op, op, other), _is_new(traces, in_other, other, op)]
            if turned[0] == turned[1]:
                turned = _against_the_rest(traces, waits, (in_op, op), (in_other, other))
            if turned[0] == turned[1]:
                tied = tied or _circle(state, waits, [op, other])
                continue
            odd, own, missed = (in_op, op, other) if turned[0] else (in_other, other, op)
        else:
            odd, own, missed = (in_op, op, other) if len(in_op) < len(in_other) else (in_other, other, op)
        call, wanted = waits.calls[own], waits.calls[missed]
        ranks = tuple(sorted(odd))
        waiting = tuple(sorted(set(state.pending) - odd))
        place = next((one.place for one in state.pending[ranks[0]] if (one.group, one.seq) == own), call.place)
        fields = {"own": describe(state, call), "call": describe(state, wanted)}
        return observation(Break.ORDER, ranks, waiting, place, ranks[0], **fields)
    return tied


def _turned_round(traces: Traces, ranks: frozenset[int], own: Op, missed: Op) -> bool:
    """Whether ranks came to the one call with fewer calls of the other's group behind them than their earlier steps had."""
    rows = (
        traces.calls.lazy()
        .filter(pl.col("rank").is_in(sorted(ranks)) & ~pl.col("p2p") & pl.col("group").is_in([own[0], missed[0]]))
        .sort("rank", "order")
        .select("rank", "group", "seq", before=(pl.col("group") == missed[0]).cum_sum().over("rank"))
        .filter((pl.col("group") == own[0]) & (pl.col("seq") <= own[1]))
        .collect()
    )
    for _, mine in rows.group_by("rank"):
        steps = mine.sort("seq")["before"].diff().drop_nulls().to_list()
        usual, now = steps[:-1], steps[-1:]
        if len(usual) < _LEAST_STEPS or now[0] >= min(usual):
            return False
    return True


def _is_new(traces: Traces, ranks: frozenset[int], own: Op, missed: Op) -> bool:
    """Whether ranks made more calls of the one group since their last call of the other than they ever made between two of these."""
    rows = (
        traces.calls.lazy()
        .filter(pl.col("rank").is_in(sorted(ranks)[:_MOST_JURORS]) & ~pl.col("p2p"))
        .filter(pl.col("group").is_in([own[0], missed[0]]))
        .sort("rank", "order")
        .select("rank", "group", made=(pl.col("group") == own[0]).cum_sum().over("rank"))
        .collect()
    )
    for _, mine in rows.group_by("rank"):
        made = mine.filter(pl.col("group") == missed[0])["made"]
        usual = made.diff().drop_nulls().to_list()
        if len(usual) < _LEAST_STEPS or mine["made"][-1] - made[-1] <= max(usual):
            return False
    return True


def _against_the_rest(
    traces: Traces, waits: Waits, one: tuple[frozenset[int], Op], other: tuple[frozenset[int], Op]
) -> list[bool]:
    """Which of two sides came to its call otherwise than all the ranks that wait there and have no part in the quarrel.

    How far a rank is in its other groups when it makes the call is the same for all in a job whose groups do alike.
    """
    for (aside, op), (waiting, _), is_first in ((one, other, True), (other, one, False)):
        jury = waits.waiting[op] - aside - waiting
        there, own, rest = (
            {_elsewhere(traces, rank, op) for rank in sorted(ranks)[:_MOST_JURORS]} for ranks in (jury, aside, waiting)
        )
        if len(there) == len(own) == len(rest) == 1 and own != rest and there in (own, rest):
            return [there == rest, there == own] if is_first else [there == own, there == rest]
    return [False, False]


def _elsewhere(traces: Traces, rank: int, op: Op) -> int:
    """The numbers of the last calls in all other groups that a rank made before this one, or so far, added up."""
    rows = traces.calls.lazy().filter((pl.col("rank") == rank) & ~pl.col("p2p"))
    here = rows.filter((pl.col("group") == op[0]) & (pl.col("seq") == op[1])).select(pl.col("order").min())
    until = here.collect().item()
    before = rows if until is None else rows.filter(pl.col("order") < until)
    last = before.filter(pl.col("group") != op[0]).group_by("group").agg(pl.col("seq").max()).collect()
    return int(last["seq"].sum())


def _is_circular(graph: Graph, waits: Waits, op: Op) -> bool:
    return any(waits.waiting[op] & graph.reach(rank) for rank in sorted(waits.missing[op])[:4])


def _share(waits: Waits, op: Op) -> float:
    return len(waits.waiting[op]) / (len(waits.waiting[op]) + len(waits.missing[op]))
