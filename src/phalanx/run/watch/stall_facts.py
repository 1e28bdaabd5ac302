"""Turns what the watch concluded about a stall into a fact: which kind it is, who waits where, what the accused does instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from phalanx.model.fact import Fact
from phalanx.model.facts import make_fact
from phalanx.run.watch.rank_position import Doing, RankPosition

_PATHS = ("aside", "ahead", "chosen", "skipped", "extra")


def stall_fact(
    positions: Mapping[int, RankPosition],
    data: Mapping[str, Any],
    clauses: Mapping[str, list[int]],
    described: str,
    told: Mapping[str, Any],
    seconds: float,
) -> Fact:
    """`data` is that of the verdict, `clauses` what ranks do (`waits in …|wait in …`), `told` what the deciding comparison adds."""
    culprits, waiting, reason = data["missing"], data["waiting"], data["reason"]
    fields: dict[str, Any] = {
        "seconds": round(seconds),
        "waiting": waiting,
        "call": _call(positions, waiting),
        "positions": described,
        "reason": reason,
        "seq": data.get("seq"),
    }
    own = [clause for clause, ranks in clauses.items() if set(ranks) & set(culprits)]
    if len(own) == 1 and waiting:
        one, _, many = own[0].partition("|")
        fields["own"] = one if len(culprits) == 1 else many
    elif reason != "stopped":
        fields["undecided"] = described
    kind = _kind(positions, reason, told)
    if kind == "stall.waits-for-rank":
        fields |= _busy(positions, culprits)
    return make_fact(kind, {**fields, **told}, ranks=culprits, source="watch")


def _busy(positions: Mapping[int, RankPosition], culprits: list[int]) -> dict[str, str]:
    """Where the accused are in their own code, if all are at one place: what they wait for there is to be fixed, not their collectives."""
    found = [positions[rank] for rank in culprits if rank in positions]
    places = {(one.frame.function, one.frame.place) for one in found if one.frame is not None}
    if len(places) != 1 or any(one.doing is not Doing.ELSEWHERE or one.frame is None for one in found):
        return {}
    function, place = places.pop()
    fields = {"busy_in": place if function.startswith("<") else f"{function}() at {place}"}
    conditions = {one.condition for one in found}
    return fields | {"condition": conditions.pop()} if len(conditions) == 1 and all(conditions) else fields


def _kind(positions: Mapping[int, RankPosition], reason: str, told: Mapping[str, Any]) -> str:
    doing = {one.doing for one in positions.values()}
    if reason == "stopped":
        return "stall.stopped"
    if reason in _PATHS:
        return "stall.left-common-path"
    if reason == "serving":
        return "stall.does-not-serve"
    if reason == "root":
        return "stall.root-differs"
    if "calls" in told:
        return "stall.cycle"
    # who is through with its script may well wait, at its end, for those that still wait for it in a collective
    if any(one.leaving for one in positions.values()) and Doing.COLLECTIVE not in doing:
        return "stall.does-not-end"
    if any(one.lock is not None for one in positions.values()):
        return "stall.waits-for-lock"
    if Doing.DATA in doing:
        return "stall.waits-for-data"
    return "stall.waits-for-peers" if Doing.CONNECT in doing else "stall.waits-for-rank"


def _call(positions: Mapping[int, RankPosition], waiting: list[int]) -> str | None:
    """Where most of the waiting ranks are."""
    places = Counter(
        f"{one.call}{f' at {one.frame.place}' if one.frame is not None else ''}"
        for rank in waiting
        if (one := positions[rank]).call
    )
    return places.most_common(1)[0][0] if places else None
