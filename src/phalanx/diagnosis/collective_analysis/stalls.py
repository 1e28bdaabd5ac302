"""Names the rank at which a stall began, and its kind: no trace, stalled host, stalled device, network, or a knot of waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from phalanx.blame.quorum import is_minority
from phalanx.diagnosis.collective_analysis.observation import Break, Observation, observation
from phalanx.diagnosis.collective_analysis.trace_state import Call, TraceState, describe
from phalanx.diagnosis.collective_analysis.wait_cycles import find_cycles
from phalanx.diagnosis.collective_analysis.waits import Op, Waits, graph_of, waits_of
from phalanx.model.trace import CallState, Traces


def find_stalls(traces: Traces, state: TraceState) -> list[Observation]:
    """What stands still and who began it."""
    waits = waits_of(state)
    if not waits.waiting:
        return []
    found = [*_stalled_devices(state, waits), *_without_trace(state, waits), *_idle(state, waits)]
    if not found:
        found = (
            _stalled_network(state, waits)
            or find_cycles(traces, state, waits)
            or _in_a_group_of_their_own(state, waits)
            or _unclear(state, waits)
        )
    return found


def _waiting_for(waits: Waits, ranks: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({one for rank in ranks for op in waits.awaited.get(rank, ()) for one in waits.waiting[op]}))


def _awaited_op(state: TraceState, waits: Waits, rank: int) -> Op:
    """The call in which the waiting for a rank began: the earliest outstanding one of most that wait in it.

    Among equals the group of the lowest name, so that it is always the same.
    """

    def weight(op: Op) -> tuple[int, int, str, int]:
        call = waits.calls[op]
        at = (call.group, call.seq, call.is_p2p)
        firsts = (state.pending[one][0] for one in waits.waiting[op])
        began = sum((first.group, first.seq, first.is_p2p) == at for first in firsts)
        return (-began, -len(waits.waiting[op]), state.labels[op[0]], abs(op[1]))

    return min(waits.awaited[rank], key=weight)


def _stalled_devices(state: TraceState, waits: Waits) -> list[Observation]:
    """Ranks that queued what a peer has completed: a collective ends for all at once, but not on a device that stopped."""
    others_stand = len(state.pending) > len(waits.lagging)
    ranks = sorted(waits.lagging) if others_stand else []
    if not is_minority(ranks, state.world, directed=True):
        return []
    parts = []
    for rank in ranks[:8]:
        call = waits.lagging[rank]
        behind = _most_done(state, call) - state.position(call.group, rank).done
        parts.append(f"rank {rank} from {describe(state, call)} on, {behind} of its calls")
    waiting = tuple(sorted(set(state.pending) - set(ranks)))
    first = waits.lagging[ranks[0]]
    fields = {"call": describe(state, first), "calls": parts}
    return [observation(Break.DEVICE, tuple(ranks), waiting, first.place, ranks[0], **fields)]


def _most_done(state: TraceState, call: Call) -> int:
    return max(state.position(call.group, rank).done for rank in state.members[call.group])


def _without_trace(state: TraceState, waits: Waits) -> list[Observation]:
    """Ranks that others wait for and that left no trace, unless most did: then the traces were not all gathered.

    Where a rank that has nothing outstanding is missing too, it is enough to explain the waiting: a lost trace is no proof then.
    """
    idle = {rank for rank in waits.awaited if rank in state.present and not state.pending.get(rank)}
    alone = [missing for missing in waits.missing.values() if not missing & idle]
    ranks = sorted({rank for missing in alone for rank in missing if rank not in state.present})
    if not ranks or not is_minority(state.world - state.present, state.world, directed=True):
        return []
    call = waits.calls[_awaited_op(state, waits, ranks[0])]
    waiting = _waiting_for(waits, ranks)
    return [observation(Break.NO_TRACE, tuple(ranks), waiting, call.place, waiting[0], call=describe(state, call))]


def _idle(state: TraceState, waits: Waits) -> list[Observation]:
    """Ranks that others wait for and that have nothing outstanding. If these are as many or more, traces cannot tell whether they are stuck or
    the few that wait made a call too many."""
    idle = sorted(rank for rank in waits.awaited if rank in state.present and not state.pending.get(rank))
    waiting = _waiting_for(waits, idle)
    if not idle:
        return []
    if len(idle) >= len(state.pending) and len(idle) > 1:
        return [observation(Break.CYCLE, (), waiting, None, waiting[0], idle=tuple(idle))]
    parts = []
    for rank in idle[:8]:
        op = _awaited_op(state, waits, rank)
        parts.append(f"rank {rank} {describe(state, waits.calls[op])}{_behind(state, waits, op, rank)}")
    call = waits.calls[_awaited_op(state, waits, idle[0])]
    fields = {"call": describe(state, call), "calls": parts}
    return [observation(Break.HOST, tuple(idle), waiting, call.place, idle[0], **fields)]


def _behind(state: TraceState, waits: Waits, op: Op, rank: int) -> str:
    """`, 3 calls behind`, where the others have entered more than the one that they wait in."""
    if waits.calls[op].is_p2p:
        return ""
    group = op[0]
    entered = Counter(state.position(group, one).entered for one in waits.waiting[op])
    count = entered.most_common(1)[0][0] - state.position(group, rank).entered
    return f" ({count} calls behind)" if count > 1 else ""


def _stalled_network(state: TraceState, waits: Waits) -> list[Observation]:
    """A call that all have entered, as the first that is outstanding in each, and that does not end."""
    graph = graph_of(state, waits)
    sources = [op for op in waits.waiting if op not in waits.missing and not graph.wanted_by[op]]
    sources = [op for op in sources if len(state.members.get(op[0], ())) > 1 and op[1] > 0]
    if not sources:
        return []
    op = min(sources, key=lambda one: (-len(waits.waiting[one]), state.labels[one[0]], one[1]))
    members = tuple(sorted(waits.waiting[op]))
    call = waits.calls[op]
    late = _not_started(state, op)
    if late:
        began = tuple(sorted(set(members) - set(late)))
        return [observation(Break.DEVICE, late, began, call.place, late[0], first=describe(state, call))]
    fields = {"call": describe(state, call), "groups": len(sources) - 1 or None}
    has_met = any(state.position(op[0], rank).done for rank in members)
    kind = Break.NETWORK if has_met else Break.UNCONNECTED
    return [observation(kind, (), members, call.place, members[0], **fields)]


def _in_a_group_of_their_own(state: TraceState, waits: Waits) -> list[Observation]:
    """The few that most of a group wait for, and that are in a call of a group in which nobody else was seen.

    Gloo does not write who belongs to a group: for whom they wait there is not known, but that they went another way is.
    """
    for op in sorted(waits.missing, key=lambda one: (-len(waits.waiting[one]), state.labels[one[0]], one[1])):
        missing, waiting = waits.missing[op], waits.waiting[op]
        own = {rank: state.pending[rank][0] for rank in sorted(missing) if state.pending.get(rank)}
        if len(missing) >= len(waiting) or len(own) < len(missing):
            continue
        if all(frozenset(state.members.get(call.group, ())) <= missing for call in own.values()):
            first = next(iter(own.values()))
            fields = {"own": describe(state, first), "call": describe(state, waits.calls[op])}
            who = tuple(sorted(waiting))
            return [observation(Break.ORDER, tuple(own), who, first.place, first.rank, **fields)]
    return []


def _not_started(state: TraceState, op: Op) -> tuple[int, ...]:
    """The members whose device has not begun a call that at least as many devices have begun and now wait in."""
    states: dict[int, int] = {}
    for rank in state.members[op[0]]:
        for call in state.pending.get(rank, ()):
            if (call.group, call.seq) == op and not call.is_p2p:
                states[rank] = call.state
    late = tuple(sorted(rank for rank, found in states.items() if found == CallState.SCHEDULED))
    return late if is_minority(late, states, directed=True) else ()


def _unclear(state: TraceState, waits: Waits) -> list[Observation]:
    """Calls that only ranks with a cut trace are missing from: whether these came cannot be told, so nobody is accused."""
    ops = [op for op in waits.unclear if op in waits.waiting]
    if not ops:
        return []
    op = min(ops, key=lambda one: (-len(waits.waiting[one]), state.labels[one[0]], abs(one[1])))
    waiting = tuple(sorted(waits.waiting[op]))
    call = waits.calls[op]
    fields = {"call": describe(state, call), "cut": tuple(sorted(waits.unclear[op]))}
    return [observation(Break.CUT_TRACE, (), waiting, call.place, waiting[0], **fields)]
