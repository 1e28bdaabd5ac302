"""Fills the rows of the rank table from what was observed: exits, exceptions, time-outs, stacks, steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from phalanx.blame import Doing, Ending, GroupCall, Line, RankState, Words
from phalanx.blame.table import UNNAMED
from phalanx.diagnosis.history import History
from phalanx.diagnosis.stack_state import doing_of, main_stacks
from phalanx.diagnosis.statements import stated_otherwise
from phalanx.model import Event, EventKind, Rank
from phalanx.model.lazy import lazy
from phalanx.sources.readers.watchdogs import DUMP

# What TORCH_DISTRIBUTED_DEBUG=DETAIL says of two ranks whose calls differ.
_FINGERPRINT = lazy(
    r"Rank (\d{1,6}) is running (?:inconsistent )?collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=\d+, ?)?OpType=(\w+)(?:, TensorShape=\[([\d, ]*)\])?"
)


def rank_states(history: History, victims: frozenset[int]) -> dict[int, RankState]:
    """One row for each rank that left a sign. `victims`: ranks whose only words are that a peer was lost."""
    stated = stated_otherwise(history)
    living = {event.rank: doing_of(event) for event in main_stacks(history.seen.events)}
    waited = {event.rank for event in history.seen.events if event.kind is EventKind.TIMEOUT}
    raised = {event.rank for event in history.exceptions}
    reasons = {event.rank: why for event in history.seen.events if (why := _reason(event)) is not None}
    calls = _calls(history, reasons)
    found: dict[int, RankState] = {}
    for rank in history.world.ranks:
        number = rank.number
        why = reasons.get(number, {})
        words = Words.VICTIM if number in waited or number in victims else Words.OWN if number in raised else Words.NONE
        found[number] = RankState(
            number,
            _doing(rank, history, living, number in waited),
            calls.get(number, ()),
            tuple(Line(frame.file, frame.line, frame.function) for frame in history.stacks.get(number, ())),
            str(why.get("condition") or "") if why.get("failed_at") else "",
            bool(why.get("left_out")),
            f"{stated.own} instead of {stated.common}" if stated is not None and stated.rank == number else "",
            _ending(number, history),
            words,
            rank.last_step,
            rank.host,
        )
    return found


def _doing(rank: Rank, history: History, living: dict[int | None, Doing], waited: bool) -> Doing:
    code = history.exit_codes.get(rank.number)
    if code == 0:
        return Doing.LEFT
    if rank.number in living:
        return living[rank.number]
    if code is not None:
        return Doing.GONE
    if rank.finished:
        return Doing.LEFT
    return Doing.WAITING if waited else Doing.SEEN


def _ending(rank: int, history: History) -> Ending | None:
    code = history.exit_codes.get(rank)
    if code is None:
        return None
    times = [event.data.get("at") for event in history.own_deaths if event.rank == rank]
    own = any(event.rank == rank for event in history.own_deaths)
    return Ending(code, own, next((at for at in times if at is not None), None))


def _reason(event: Event) -> dict[str, Any] | None:
    """Why a rank ended, where a supervisor looked."""
    why = event.data.get("why") if event.kind is EventKind.EXIT and event.rank is not None else None
    return why if isinstance(why, dict) else None


def _calls(history: History, reasons: dict[int | None, dict[str, Any]]) -> dict[int, tuple[GroupCall, ...]]:
    """The last calls of each rank: those that its time-outs name, one for each group, what it says when another
    rank's time-out makes it report, and the one that it failed in."""
    by_group: dict[int, dict[str, GroupCall]] = {}
    for event in history.seen.events:
        if event.kind is EventKind.TIMEOUT and event.rank is not None and "seq" in event.data:
            call = _timed_out(event)
            own = by_group.setdefault(event.rank, {})
            earlier = own.get(call.group)
            if earlier is None or (call.seq or 0) < (earlier.seq or 0):
                own[call.group] = call  # of several that time out the first one holds up the others
    for event in history.seen.events:
        if event.source == DUMP and event.rank is not None:
            group = str(event.data["group"])
            last = event.data.get("last_enqueued"), event.data.get("last_completed")
            call = GroupCall(group, last_enqueued=last[0], last_completed=last[1])
            by_group.setdefault(event.rank, {}).setdefault(group, call)
    for event in history.exceptions:
        for rank, op, sizes in _FINGERPRINT.findall(event.text):
            by_group.setdefault(int(rank), {}).setdefault("", GroupCall("", op=op, sizes=sizes))
    for rank, why in reasons.items():
        if rank is not None and isinstance(made := why.get("call"), dict):
            by_group.setdefault(rank, {})[""] = _failed(made)
    return {rank: tuple(own.values()) for rank, own in by_group.items()}


def _timed_out(event: Event) -> GroupCall:
    data = event.data
    return GroupCall(
        str(data.get("group") or UNNAMED),
        int(data["seq"]),
        str(data.get("op", "")),
        str(data.get("sizes", "")),
        last_enqueued=data.get("last_enqueued"),
        last_completed=data.get("last_completed"),
        waited_s=data.get("waited_s"),
    )


def _failed(call: dict[str, Any]) -> GroupCall:
    """The call in which an exception was raised, as the process itself recorded it. It has no number."""
    told = {name: str(value) for name, value in call.items() if name not in ("op", "shape")}
    op = str(call.get("op", ""))
    found = GroupCall("", op=op, sizes=str(call.get("shape", "")), facts=told)
    if not found.is_point_to_point:
        return found
    way = "to" if "to" in call else "from"
    other = str(call.get("to", call.get("root")))
    return replace(found, peer=int(other) if other.isdecimal() else None, facts={**told, "way": way})


def only_victims(claims: Iterable[tuple[bool, frozenset[int]]]) -> frozenset[int]:
    """Of claims, given as whether they are a victim's words and who shows them: ranks that say nothing else."""
    told = list(claims)
    suffered = {rank for is_victim, ranks in told if is_victim for rank in ranks}
    return frozenset(suffered.difference(*(ranks for is_victim, ranks in told if not is_victim)))
