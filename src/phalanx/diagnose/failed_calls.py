"""Of ranks that failed in a collective: who had asked for something else than most, or called it from under a condition."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

from phalanx.diagnose.claim import Claim
from phalanx.diagnose.history import History
from phalanx.model import EventKind

_ONE_TO_ONE = ("send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list", "recv_object_list")


def in_another_call(claim: Claim, history: History) -> frozenset[int]:
    """Ranks that failed in a collective for which they had asked otherwise than most: another shape, type, name or root.

    Where it is certain that calls differed, and all that are known are alike, it was the one rank that left nothing behind.
    """
    calls: dict[int, dict[str, str]] = {}
    for event in history.seen.events:
        why = event.data.get("why") if event.kind is EventKind.EXIT else None
        if event.rank is not None and isinstance(why, dict) and isinstance(why.get("call"), dict):
            calls[event.rank] = why["call"]
    if any(call.get("op") in _ONE_TO_ONE for call in calls.values()):
        return frozenset()  # who sends and who receives ask for different things by nature
    _add_by_size(claim, calls)
    odd: set[int] = set()
    for fact in {fact for call in calls.values() for fact in call}:
        told = {rank: call[fact] for rank, call in calls.items() if fact in call}
        common, most = Counter(told.values()).most_common(1)[0]
        if most * 2 > len(history.world.all_ranks):
            odd |= {rank for rank, value in told.items() if value != common}
    unknown = history.world.all_ranks - calls.keys()
    if not odd and len(unknown) == 1 and len(calls) > 1 and "-different-" in claim.cause:
        return unknown if _are_alike(calls.values()) else frozenset()
    return frozenset(odd) if is_minority(odd, history.world.all_ranks) else frozenset()


def _are_alike(calls: Iterable[dict[str, str]]) -> bool:
    """Whether all that is known of these calls is the same; of one that was ended by the launcher only the shape is."""
    told: dict[str, set[str]] = {}
    for call in calls:
        for fact, value in call.items():
            told.setdefault(fact, set()).add(value)
    return all(len(values) == 1 for values in told.values())


def left_out_half(history: History) -> frozenset[int]:
    """Of two ranks that failed while both received from each other, or both sent: the one whose own half stands under a condition
    that it may have passed by. Known only of jobs that were watched."""
    calls: dict[int, tuple[str, str]] = {}
    left: set[int] = set()
    for event in history.seen.events:
        why = event.data.get("why") if event.kind is EventKind.EXIT else None
        if event.rank is None or not isinstance(why, dict) or not isinstance(call := why.get("call"), dict):
            continue
        calls[event.rank] = ("to", str(call["to"])) if "to" in call else ("from", str(call.get("root")))
        if why.get("left_out") and call.get("op") in _ONE_TO_ONE:
            left.add(event.rank)
    for rank in left:
        way, other = calls[rank]
        partner = int(other) if other.isdecimal() else -1
        if calls.get(partner) == (way, str(rank)) and partner not in left:
            return frozenset({rank})
    return frozenset()


def _add_by_size(claim: Claim, calls: dict[int, dict[str, str]]) -> None:
    """A rank that died of too long a message had asked for the smaller of two sizes that others are known to have asked for."""
    shapes = sorted({call["shape"] for call in calls.values() if "shape" in call}, key=_elements)
    if len(shapes) != 2 or _elements(shapes[0]) == _elements(shapes[1]):
        return
    for proof in claim.roots:
        got, want = (proof.captures.get(name, "") for name in ("got", "want"))
        if proof.event.rank is not None and got.isdecimal() and want.isdecimal() and int(got) > int(want):
            calls.setdefault(proof.event.rank, {"shape": shapes[0]})


def _elements(shape: str) -> int:
    return math.prod(int(size) for size in re.findall(r"\d+", shape))


def under_a_condition(history: History) -> frozenset[int]:
    """Ranks that failed at a line under a condition on the rank, while others failed on the common path: calls that did not
    fit were then made by those that went aside. Known only of jobs that were watched, where the script was at hand."""
    aside = failed_aside(history)
    return (
        aside if len(aside) < len(_failures(history)) and is_minority(aside, history.world.all_ranks) else frozenset()
    )


def failed_aside(history: History) -> frozenset[int]:
    """All ranks that failed at a line under a condition on the rank."""
    return frozenset(rank for rank, why in _failures(history).items() if why.get("condition"))


def _failures(history: History) -> dict[int, dict[str, object]]:
    """Why each rank ended, of those whose own line is known."""
    return {
        event.rank: why
        for event in history.seen.events
        if event.kind is EventKind.EXIT and event.rank is not None
        if isinstance(why := event.data.get("why"), dict) and why.get("failed_at")
    }


def is_minority(ranks: Iterable[int], everyone: frozenset[int]) -> bool:
    count = len(set(ranks))
    return 0 < count <= len(everyone) / 2 and count < len(everyone)
