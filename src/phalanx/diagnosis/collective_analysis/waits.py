"""Who waits for whom, through all groups at once, and where the waiting ends: there the stall began.

A rank waits in its outstanding calls; a call waits for members that have not entered it, or, if all have, for members that
are still busy with an earlier one. A rank is where a stall begins if it is waited for and waits for nobody: it left no trace,
or nothing of its is outstanding, or it has queued what its peers have completed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from phalanx.diagnosis.collective_analysis.trace_state import Call, TraceState

_MOST_CALLS = 16  # of one group that are looked at
Op = tuple[
    int, int
]  # group and number of a collective, or group and a negative number for a pair's point-to-point call


@dataclass(slots=True)
class Waits:
    """The wait-for graph, and what it says of single ranks."""

    missing: dict[Op, frozenset[int]] = field(
        default_factory=dict
    )  # members that have not entered a call that others wait in
    unclear: dict[Op, frozenset[int]] = field(
        default_factory=dict
    )  # calls from which only members are missing whose trace breaks off before it
    waiting: dict[Op, frozenset[int]] = field(default_factory=dict)  # members in whom the call is outstanding
    calls: dict[Op, Call] = field(default_factory=dict)  # one of its outstanding calls
    awaited: dict[int, list[Op]] = field(
        default_factory=lambda: defaultdict(list)
    )  # by rank: calls that it is missing from
    lagging: dict[int, Call] = field(
        default_factory=dict
    )  # ranks that queued what a peer completed, and the first such call


def waits_of(state: TraceState) -> Waits:
    """Compare the members of every group in which something is outstanding."""
    waits = Waits()
    in_call: dict[Op, set[int]] = defaultdict(set)
    furthest = {group: max(one.done for one in ranks.values()) for group, ranks in state.positions.items() if ranks}
    for rank in state.pending:
        for call in state.first_pending(rank):
            if not call.is_p2p:
                in_call[(call.group, call.seq)].add(rank)
                waits.calls.setdefault((call.group, call.seq), call)
        behind = next((call for call in state.pending[rank] if _is_done_by_a_peer(state, call, furthest)), None)
        if behind is not None:
            waits.lagging[rank] = behind
    for op, ranks in _fullest(in_call):
        group, seq = op
        members = state.members.get(group, ())
        absent = frozenset(rank for rank in members if rank not in ranks and state.position(group, rank).entered < seq)
        waits.waiting[op] = frozenset(ranks)
        _add_absent(state, waits, op, absent)
    _add_pairs(state, waits)
    return waits


def _add_absent(state: TraceState, waits: Waits, op: Op, absent: frozenset[int]) -> None:
    """Note who has not entered a call. A trace that breaks off before it proves nothing of its rank."""
    missing = absent - state.cut
    if missing:
        waits.missing[op] = missing
        for rank in missing:
            waits.awaited[rank].append(op)
    elif absent:
        waits.unclear[op] = absent


def _fullest(in_call: dict[Op, set[int]]) -> Iterator[tuple[Op, set[int]]]:
    """Of each group the calls that most wait in: in a large group that came apart, every rank may be in another one."""
    by_group: dict[int, list[Op]] = defaultdict(list)
    for op in in_call:
        by_group[op[0]].append(op)
    for ops in by_group.values():
        for op in sorted(ops, key=lambda one: (-len(in_call[one]), one[1]))[:_MOST_CALLS]:
            yield op, in_call[op]


def _is_done_by_a_peer(state: TraceState, call: Call, furthest: dict[int, int]) -> bool:
    """Whether another member has completed the call: it ends for all at once, so this rank's device fell behind."""
    if call.is_p2p or call.op in ENDS_ALONE:
        return False
    return state.position(call.group, call.rank).done < call.seq <= furthest.get(call.group, 0)


# The root of these may be done, or a member other than the root, before the rest has come.
ENDS_ALONE = frozenset({"broadcast", "_broadcast_oop", "reduce", "_reduce_oop", "scatter", "gather", "coalesced"})


def _add_pairs(state: TraceState, waits: Waits) -> None:
    """Point-to-point calls: the k-th outstanding send wants the k-th outstanding receive of the same pair."""
    open_calls: dict[tuple[int, int, int, str], list[Call]] = defaultdict(list)
    for rank, calls in state.pending.items():
        for call in calls:
            if call.is_p2p and call.peer is not None and call.op in ("send", "recv"):
                open_calls[(call.group, rank, call.peer, call.op)].append(call)
    for number, ((group, rank, peer, op), calls) in enumerate(sorted(open_calls.items())):
        other = "recv" if op == "send" else "send"
        partners = open_calls.get((group, peer, rank, other), [])
        if len(calls) <= len(partners) or peer == rank:
            continue
        key = (group, -number - 1)
        waits.calls[key] = calls[len(partners)]
        waits.waiting[key] = frozenset({rank})
        _add_absent(state, waits, key, frozenset({peer}))


@dataclass(frozen=True, slots=True)
class Graph:
    """Ranks wait in calls, calls wait for ranks."""

    calls_of: dict[int, list[Op]]
    wanted_by: dict[Op, frozenset[int]]

    def waits_for(self, rank: int) -> frozenset[int]:
        """The ranks that this one waits for directly."""
        return frozenset().union(*(self.wanted_by.get(op, frozenset()) for op in self.calls_of.get(rank, ())))

    def reach(self, start: int) -> set[int]:
        """Every rank that this one waits for, directly or through others."""
        ranks: set[int] = set()
        ops: set[Op] = set()
        ahead = [start]
        while ahead:
            for op in self.calls_of.get(ahead.pop(), ()):
                if op not in ops:
                    ops.add(op)
                    fresh = self.wanted_by.get(op, frozenset()) - ranks
                    ranks |= fresh
                    ahead.extend(fresh)
        return ranks


def graph_of(state: TraceState, waits: Waits) -> Graph:
    """Where all have entered a call, it waits for those that are busy with an earlier one of theirs."""
    earliest = {rank: calls[0] for rank, calls in state.pending.items() if calls}
    calls_of: dict[int, list[Op]] = defaultdict(list)
    wanted_by: dict[Op, frozenset[int]] = {}
    for op, ranks in waits.waiting.items():
        call = waits.calls[op]
        busy = (rank for rank in ranks if (earliest[rank].group, earliest[rank].seq) != (call.group, call.seq))
        wanted_by[op] = waits.missing.get(op) or waits.unclear.get(op) or frozenset(busy)
        for rank in ranks:
            calls_of[rank].append(op)
    return Graph(calls_of, wanted_by)
