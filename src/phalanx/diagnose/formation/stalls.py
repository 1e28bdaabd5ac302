"""Names the rank at which a stall began, and its kind: no trace, stalled host, stalled device, network, or a knot of waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from phalanx.diagnose.formation.knots import find_knots
from phalanx.diagnose.formation.observation import Break, Observation, named, sentence
from phalanx.diagnose.formation.standing import Call, Standing, describe
from phalanx.diagnose.formation.waits import Op, Waits, graph_of, waits_of
from phalanx.model.trace import CallState, Traces


def find_stalls(traces: Traces, standing: Standing) -> list[Observation]:
    """What stands still and who began it."""
    waits = waits_of(standing)
    if not waits.waiting:
        return []
    found = [*_stalled_devices(standing, waits), *_without_trace(standing, waits), *_idle(standing, waits)]
    if not found:
        found = (
            _stalled_network(standing, waits)
            or find_knots(traces, standing, waits)
            or _in_a_group_of_their_own(standing, waits)
            or _unclear(standing, waits)
        )
    return found


def _waiting_for(waits: Waits, ranks: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({one for rank in ranks for op in waits.awaited.get(rank, ()) for one in waits.waiting[op]}))


def _awaited_op(standing: Standing, waits: Waits, rank: int) -> Op:
    """The call in which the waiting for a rank began: the earliest outstanding one of most that wait in it.

    Among equals the group of the lowest name, so that it is always the same.
    """

    def weight(op: Op) -> tuple[int, int, str, int]:
        call = waits.calls[op]
        at = (call.group, call.seq, call.is_p2p)
        firsts = (standing.pending[one][0] for one in waits.waiting[op])
        began = sum((first.group, first.seq, first.is_p2p) == at for first in firsts)
        return (-began, -len(waits.waiting[op]), standing.labels[op[0]], abs(op[1]))

    return min(waits.awaited[rank], key=weight)


def _stalled_devices(standing: Standing, waits: Waits) -> list[Observation]:
    """Ranks that queued what a peer has completed: a collective ends for all at once, but not on a device that stopped."""
    others_stand = len(standing.pending) > len(waits.lagging)
    ranks = sorted(waits.lagging) if others_stand else []
    if not ranks or len(ranks) * 2 > len(standing.world):
        return []
    parts = []
    for rank in ranks[:8]:
        call = waits.lagging[rank]
        behind = _most_done(standing, call) - standing.position(call.group, rank).done
        parts.append(f"rank {rank} from {describe(standing, call)} on, {behind} of its calls")
    waiting = tuple(sorted(set(standing.pending) - set(ranks)))
    verb = "has" if len(ranks) == 1 else "have"
    text = f"{named(ranks)} {verb} queued calls that peers completed: {'; '.join(parts)}; {named(waiting)} wait"
    return [Observation(Break.DEVICE, sentence(text), tuple(ranks), waiting, waits.lagging[ranks[0]].place, ranks[0])]


def _most_done(standing: Standing, call: Call) -> int:
    return max(standing.position(call.group, rank).done for rank in standing.members[call.group])


def _without_trace(standing: Standing, waits: Waits) -> list[Observation]:
    """Ranks that others wait for and that left no trace, unless most did: then the traces were not all gathered.

    Where a rank that has nothing outstanding is missing too, it is enough to explain the waiting: a lost trace is no proof then.
    """
    idle = {rank for rank in waits.awaited if rank in standing.present and not standing.pending.get(rank)}
    alone = [missing for missing in waits.missing.values() if not missing & idle]
    ranks = sorted({rank for missing in alone for rank in missing if rank not in standing.present})
    if not ranks or len(standing.world - standing.present) * 2 > len(standing.world):
        return []
    call = waits.calls[_awaited_op(standing, waits, ranks[0])]
    waiting = _waiting_for(waits, ranks)
    text = f"{named(ranks)} left no trace; {named(waiting)} wait in {describe(standing, call)}"
    return [Observation(Break.NO_TRACE, sentence(text), tuple(ranks), waiting, call.place, waiting[0])]


def _idle(standing: Standing, waits: Waits) -> list[Observation]:
    """Ranks that others wait for and that have nothing outstanding. If these are most, the few that wait are the odd ones."""
    idle = sorted(rank for rank in waits.awaited if rank in standing.present and not standing.pending.get(rank))
    waiting = _waiting_for(waits, idle)
    if not idle:
        return []
    if len(idle) > max(len(standing.pending), 1):
        return _came_alone(standing, waits, idle, waiting)
    if len(idle) == len(standing.pending) and len(idle) > 1:
        text = f"a tie: {named(waiting)} wait for {named(idle)}, which have nothing outstanding; either half may have left the common path"
        return [Observation(Break.CYCLE, sentence(text), (), waiting, None, waiting[0])]
    parts = []
    for rank in idle[:8]:
        op = _awaited_op(standing, waits, rank)
        parts.append(
            f"rank {rank} never entered {describe(standing, waits.calls[op])}{_behind(standing, waits, op, rank)}"
        )
    call = waits.calls[_awaited_op(standing, waits, idle[0])]
    text = f"{named(idle)} with nothing outstanding while {named(waiting)} wait: {'; '.join(parts)}"
    return [Observation(Break.HOST, sentence(text), tuple(idle), waiting, call.place, idle[0])]


def _behind(standing: Standing, waits: Waits, op: Op, rank: int) -> str:
    """`, 3 calls behind`, where the others have entered more than the one that they wait in."""
    if waits.calls[op].is_p2p:
        return ""
    group = op[0]
    entered = Counter(standing.position(group, one).entered for one in waits.waiting[op])
    count = entered.most_common(1)[0][0] - standing.position(group, rank).entered
    return f" ({count} calls behind)" if count > 1 else ""


def _came_alone(standing: Standing, waits: Waits, idle: list[int], waiting: tuple[int, ...]) -> list[Observation]:
    call = waits.calls[_awaited_op(standing, waits, idle[0])]
    text = f"{named(waiting)} came alone to {describe(standing, call)}; {named(idle)} have nothing outstanding"
    return [Observation(Break.ORDER, sentence(text), waiting, (), call.place, waiting[0])]


def _stalled_network(standing: Standing, waits: Waits) -> list[Observation]:
    """A call that all have entered, as the first that is outstanding in each, and that does not end."""
    graph = graph_of(standing, waits)
    sources = [op for op in waits.waiting if op not in waits.missing and not graph.wanted_by[op]]
    sources = [op for op in sources if len(standing.members.get(op[0], ())) > 1 and op[1] > 0]
    if not sources:
        return []
    op = min(sources, key=lambda one: (-len(waits.waiting[one]), standing.labels[one[0]], one[1]))
    members = tuple(sorted(waits.waiting[op]))
    call = waits.calls[op]
    late = _not_started(standing, op)
    if late:
        began = named(set(members) - set(late))
        text = f"{named(late)} queued and did not start {describe(standing, call)}, which {began} started"
        return [Observation(Break.DEVICE, sentence(text), late, tuple(set(members) - set(late)), call.place, late[0])]
    others = f"; {len(sources) - 1} more groups stand likewise" if len(sources) > 1 else ""
    if not any(standing.position(op[0], rank).done for rank in members):
        text = f"{named(members)} entered {describe(standing, call)}, the first call of its group, and it never ended{others}"
        return [Observation(Break.UNCONNECTED, sentence(text), (), members, call.place, members[0])]
    text = f"{named(members)} all entered {describe(standing, call)}, and it does not end{others}"
    return [Observation(Break.NETWORK, sentence(text), (), members, call.place, members[0])]


def _in_a_group_of_their_own(standing: Standing, waits: Waits) -> list[Observation]:
    """The few that most of a group wait for, and that are in a call of a group in which nobody else was seen.

    Gloo does not write who belongs to a group: for whom they wait there is not known, but that they went another way is.
    """
    for op in sorted(waits.missing, key=lambda one: (-len(waits.waiting[one]), standing.labels[one[0]], one[1])):
        missing, waiting = waits.missing[op], waits.waiting[op]
        own = {rank: standing.pending[rank][0] for rank in sorted(missing) if standing.pending.get(rank)}
        if len(missing) >= len(waiting) or len(own) < len(missing):
            continue
        if all(frozenset(standing.members.get(call.group, ())) <= missing for call in own.values()):
            first = next(iter(own.values()))
            text = f"{named(missing)} is in {describe(standing, first)}, while {named(waiting)} wait for it in {describe(standing, waits.calls[op])}"
            return [
                Observation(Break.ORDER, sentence(text), tuple(own), tuple(sorted(waiting)), first.place, first.rank)
            ]
    return []


def _not_started(standing: Standing, op: Op) -> tuple[int, ...]:
    """The members whose device has not begun a call that at least as many devices have begun and now wait in."""
    states: dict[int, int] = {}
    for rank in standing.members[op[0]]:
        for call in standing.pending.get(rank, ()):
            if (call.group, call.seq) == op and not call.is_p2p:
                states[rank] = call.state
    late = tuple(sorted(rank for rank, state in states.items() if state == CallState.SCHEDULED))
    return late if 0 < len(late) * 2 <= len(states) else ()


def _unclear(standing: Standing, waits: Waits) -> list[Observation]:
    """Calls that only ranks with a cut trace are missing from: whether these came cannot be told, so nobody is accused."""
    ops = [op for op in waits.unclear if op in waits.waiting]
    if not ops:
        return []
    op = min(ops, key=lambda one: (-len(waits.waiting[one]), standing.labels[one[0]], abs(one[1])))
    waiting = tuple(sorted(waits.waiting[op]))
    call = waits.calls[op]
    text = f"{named(waiting)} wait in {describe(standing, call)}; the trace of {named(waits.unclear[op])} breaks off before it"
    return [Observation(Break.CUT_TRACE, sentence(text), (), waiting, call.place, waiting[0])]
