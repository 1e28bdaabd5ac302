"""Tells who waits for whom when a job stands still, and says it in one sentence with both sides' places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from phalanx.blame import accuse
from phalanx.blame.quorum import is_minority
from phalanx.model.fact import Fact
from phalanx.model.ranks import name_ranks
from phalanx.run.watch.dissent import Dissent
from phalanx.run.watch.partners import circles, describe_circle
from phalanx.run.watch.rank_position import Doing, RankPosition
from phalanx.run.watch.recorder import GroupState
from phalanx.run.watch.stall_facts import stall_fact
from phalanx.run.watch.table import table_of
from phalanx.run.watch.ties import break_tie

_FRAMEWORKS = re.compile(r"-packages/(?:jax|torch|horovod|tensorflow)/")  # whose own end waits for the peers
_SIGNALS_FOR_GO_ON = "kill -CONT"
_REASONS = {  # by the strategy that accused
    "stopped": "stopped",
    "left-early": "ended",
    "wait-chain": "missing",
    "awaited-peer": "missing",
    "other-call": "mismatch",
    "wait-cycle": "circle",
    "came-alone": "alone",
    "outside": "elsewhere",
    "still-starting": "starting",
    "other-line": "odd",
}


@dataclass(frozen=True, slots=True)
class StallVerdict:
    """Who is to blame as far as it can be told (nobody if it cannot), and the sentence about it."""

    culprits: tuple[int, ...]
    waiting: tuple[int, ...]
    text: str
    reason: str  # how the culprits were told: stopped, ended, missing, alone, elsewhere, data, odd, mismatch, circle, root, name, address, aside, chosen, ahead, leaving, starting, exchange, skipped, extra, nobody
    data: Mapping[str, Any]
    positions: Mapping[int, RankPosition] = field(default_factory=dict)
    told: Mapping[str, Any] = field(default_factory=dict)  # fields of the fact that the deciding comparison adds

    def fact(self, seconds: float) -> Fact:
        """The same as a fact, for rules."""
        culprits = frozenset(self.culprits)
        clauses = _clauses(self.positions, culprits)
        described = "; ".join(_with_subject(ranks, clause) for clause, ranks in clauses.items())
        return stall_fact(self.positions, self.data, clauses, described, self.told, seconds)


def judge_stall(
    positions: Mapping[int, RankPosition],
    recorders: Mapping[int, Mapping[str, GroupState]],
    size: int,
    dissent: Dissent | None = None,
) -> StallVerdict:
    """Stopped ranks, then roots and addresses that differ, the recorders' sequence numbers and the stacks decide; a tie that the script itself
    does not break accuses nobody."""
    culprits, reason = _blame(positions, recorders, size)
    decides: Dissent | None = dissent if reason not in ("stopped", "ended") else None
    if decides is None and not culprits:
        decides = _tiebreak(positions, size)
    fields = dict[str, Any]()
    if decides is not None:
        culprits, reason, fields = decides.culprits, decides.reason, dict(decides.fields)
    waiting = tuple(
        rank
        for rank, position in sorted(positions.items())
        if position.doing in (Doing.COLLECTIVE, Doing.CONNECT) and rank not in culprits
    )
    partners = {rank: one.partner for rank, one in positions.items() if one.partner is not None}
    rings = circles(partners)
    # what ranks of a circle want of one another is told once, by the circle
    in_circle = {rank for circle in rings for rank in circle}
    told = {rank: replace(one, partner=None) if rank in in_circle else one for rank, one in positions.items()}
    calls = [describe_circle(circle, partners) for circle in rings]
    parts = [*_sentences(told, culprits), *calls, decides.text if decides is not None else ""]
    if reason != "ended":
        parts.append(_not_seen(sorted(set(range(size)) - positions.keys())))
    if partners and reason == "nobody":
        reason = "exchange"
    if rings and reason == "circle":
        fields["calls"] = "; ".join(calls)
    data = _data(positions, recorders, culprits, waiting, reason) | (
        {"circles": [list(circle) for circle in rings]} if rings else {}
    )
    text = "; ".join(filter(None, parts))
    return StallVerdict(tuple(sorted(culprits)), waiting, text, reason, data, told, fields)


def _tiebreak(positions: Mapping[int, RankPosition], size: int) -> Dissent | None:
    """What the script itself says, where all ranks wait and the engine accuses nobody."""
    tied = [rank for rank, one in positions.items() if one.doing is Doing.COLLECTIVE]
    living = [one for one in positions.values() if one.doing is not Doing.ENDED]
    found = break_tie(positions, tied) if len(tied) == len(living) == size else None
    return found if found is not None and is_minority(found.culprits, range(size), directed=True) else None


def _not_seen(absent: list[int]) -> str:
    return f"{name_ranks(absent)} {'was' if len(absent) == 1 else 'were'} not seen" if absent else ""


def _data(
    positions: Mapping[int, RankPosition],
    recorders: Mapping[int, Mapping[str, GroupState]],
    culprits: Iterable[int],
    waiting: tuple[int, ...],
    reason: str,
) -> dict[str, Any]:
    """For the bundle."""
    data: dict[str, Any] = {
        "missing": sorted(culprits),
        "waiting": list(waiting),
        "reason": reason,
        "places": {str(rank): _place_data(position) for rank, position in sorted(positions.items())},
    }
    calls = Counter(positions[rank].call for rank in waiting if positions[rank].call)
    if calls:
        data["op"] = calls.most_common(1)[0][0]
    if seqs := _sequence(waiting, recorders):
        data["seq"] = seqs
    return data


def _blame(
    positions: Mapping[int, RankPosition], recorders: Mapping[int, Mapping[str, GroupState]], size: int
) -> tuple[frozenset[int], str]:
    """Whom the one engine accuses, and by what."""
    ended = {rank for rank, one in positions.items() if one.doing is Doing.ENDED}
    leaving = frozenset(rank for rank, one in positions.items() if one.leaving)
    if leaving and leaving | ended >= positions.keys():
        over = all(positions[rank].code == 0 for rank in ended)
        is_few = over and is_minority(leaving, range(size), directed=True)
        return (leaving if is_few else frozenset()), "leaving"
    found = accuse(table_of(positions, recorders, size))
    if found.strategy == "outside" and all(positions[rank].doing is Doing.DATA for rank in found.ranks):
        return found.ranks, "data"
    return found.ranks, _REASONS.get(found.strategy, "nobody")


def _sequence(waiting: Iterable[int], recorders: Mapping[int, Mapping[str, GroupState]]) -> int | None:
    found = Counter(
        state.waits_in.seq for rank in waiting for state in recorders.get(rank, {}).values() if state.waits_in
    )
    return found.most_common(1)[0][0] if found else None


def _sentences(positions: Mapping[int, RankPosition], culprits: frozenset[int]) -> list[str]:
    """Ranks that do the same at the same place share a clause; the accused come last."""
    return [_with_subject(ranks, clause) for clause, ranks in _clauses(positions, culprits).items()]


def _clauses(positions: Mapping[int, RankPosition], culprits: frozenset[int]) -> dict[str, list[int]]:
    """By what they do, the ranks that do it."""
    clauses: dict[str, list[int]] = {}
    for rank in sorted(positions, key=lambda rank: (rank in culprits, rank)):
        clauses.setdefault(describe(positions[rank]), []).append(rank)
    return clauses


def _with_subject(ranks: list[int], clause: str) -> str:
    one, many = clause.split("|", 1)
    return f"{name_ranks(ranks)} {one if len(ranks) == 1 else many}"


def describe(position: RankPosition) -> str:
    """What a rank does, after "rank 2 …|ranks 2, 3 …"."""
    where = f" at {position.frame.place}" if position.frame is not None else ""
    under = f", under `{position.condition}`" if position.condition else ""
    above = position.condition_frame
    if above is not None and position.frame is not None and above.place != position.frame.place:
        under = f", called at {above.place}{under}"
    if position.doing is Doing.ELSEWHERE:
        return _elsewhere(position, where, under)
    if position.doing is Doing.STOPPED:
        return f"is stopped by a signal (`{_SIGNALS_FOR_GO_ON} {position.pid}` lets it go on){where}|are stopped by a signal{where}"
    if position.doing is Doing.ENDED:
        how = f" with status {position.code}" if position.code is not None else ""
        how += f" {position.after}" if position.after else ""
        return f"has ended{how}|have ended{how}"
    if position.doing is Doing.COLLECTIVE:
        call = "backward, for gradients," if position.call == "backward" else position.call
        if position.partner is not None:
            call += f" {'to' if position.partner.sends else 'from'} rank {position.partner.rank}"
        return f"waits in {call}{where}{under}|wait in {call}{where}{under}"
    if position.doing is Doing.CONNECT:
        return f"waits in {position.call} for its peers to connect{where}{under}|wait in {position.call} for peers to connect{where}{under}"
    if position.doing is Doing.DATA:
        inner = ", ".join(sorted({f"{frame.function}() at {frame.place}" for frame in position.workers}))
        told = f", whose worker is in {inner}" if inner else ""
        return f"waits for its data loader{where}{told}|wait for their data loaders{where}{told}"
    return "gave no stack|gave no stack"


def _elsewhere(position: RankPosition, where: str, under: str) -> str:
    if position.leaving and position.frame is not None and _FRAMEWORKS.search(position.frame.path):
        ends = f"has left the script{' ' + position.after if position.after else ''} and waits in {position.frame.function}(){where}"
        return f"{ends}|{ends.replace('has left', 'have left').replace('and waits', 'and wait')}"
    if position.leaving:
        waits = f"for what runs in {position.frame.function}(){where}" if position.frame is not None else ""
        return f"has left the script and does not end: it waits {waits}|have left the script and do not end: they wait {waits}"
    if position.lock is not None:
        told = f"{where.removeprefix(' ')}{under} {position.lock.describe()}".strip()
        return f"waits {told}|wait {told}"
    function = position.frame.function if position.frame is not None else ""
    called = f"{function}()" if function and not function.startswith("<") else "the script"
    under += ", where native code holds the interpreter's lock" if position.holds_lock else ""
    doing = "sleeps" if position.sleeps else "is"
    many = "sleep" if position.sleeps else "are"
    return f"{doing} in {called}{where}{under}|{many} in {called}{where}{under}"


def _place_data(position: RankPosition) -> dict[str, Any]:
    data: dict[str, Any] = {"doing": position.doing.value}
    if position.call:
        data["call"] = position.call
    if position.partner is not None:
        data["partner"] = position.partner.rank
    if position.frame is not None:
        data.update(file=position.frame.file, line=position.frame.line, function=position.frame.function)
        if position.frame.source:
            data["source"] = position.frame.source
    if position.condition and position.condition_frame is not None:
        data.update(condition=position.condition, condition_line=position.condition_frame.line)
    if position.workers:
        data["workers"] = [f"{frame.function}() at {frame.place}" for frame in position.workers]
    return data
