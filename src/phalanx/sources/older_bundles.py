"""Facts of bundles that older releases wrote: made from the data of their records, which held the same without naming it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from phalanx.model.fact import Fact
from phalanx.model.facts import make_fact
from phalanx.model.ranks import name_ranks

_PATHS = ("aside", "ahead", "chosen")
_HOST = re.compile(r"the host (?P<host>\S+) \(ranks? [\d, ]+\) is off or cut off: (?P<why>.+)")
_PATH = re.compile(
    r"the path between (?P<one>\S+) \(ranks? (?P<ranks_one>[\d, ]+)\) and (?P<other>\S+) \(ranks? (?P<ranks_other>[\d, ]+)\) is broken"
)
_UNHEARD = re.compile(
    r"(?P<bytes>\d+) bytes from rank (?P<sender>\d+) to (?P<to>rank \d+|another host) \((?P<address>[^)\s]+)\) are not acknowledged, (?P<times>once|\d+ times)"
)
_UNANSWERED = re.compile(
    r"rank (?P<rank>\d+) gets no answer from (?P<address>\S+), (?P<times>once|\d+ times) asked again"
)


def facts_of(kind: str, ranks: tuple[int, ...], text: str, data: Mapping[str, Any]) -> list[Fact]:
    """What a record of the watch established; `text` only where its data do not tell it."""
    if kind == "stall":
        return [_of_stall(text, data)] if isinstance(data.get("reason"), str) else []
    if kind == "straggler" and isinstance(data.get("factor"), int | float):
        share = data.get("others_wait")
        fields = {"factor": f"{data['factor']:.1f}", "what": str(data.get("why", "")), "why": text.rpartition("; ")[2]}
        fields["share"] = f"{share:.0%}" if isinstance(share, int | float) else ""
        return [make_fact("rank.slower", fields, ranks=ranks, source="watch")]
    if kind == "death":
        return [death_fact(ranks, data, is_child=True)]
    if kind == "network":
        return [fact for part in text.split("; ") for fact in _of_network(part, ranks)]
    return []


def death_fact(ranks: tuple[int, ...], why: Mapping[str, Any], *, is_child: bool = False) -> Fact:
    """How a process died, from what the watch wrote down of it."""
    fields: dict[str, Any] = {
        name: str(why[name]) for name in ("cause", "signal", "place", "library", "node") if why.get(name) is not None
    }
    return make_fact(
        "rank.died", {**fields, "why": str(why.get("text") or ""), "child": is_child}, ranks=ranks, source="watch"
    )


def _of_stall(text: str, data: Mapping[str, Any]) -> Fact:
    reason = str(data["reason"])
    places = data.get("places") if isinstance(data.get("places"), dict) else {}
    found = {int(rank): place for rank, place in (places or {}).items() if isinstance(place, dict)}
    culprits, waiting = (_ranks(data.get(name)) for name in ("missing", "waiting"))
    has_partners = any("partner" in place for place in found.values())
    if reason == "nobody" and has_partners:
        reason = "exchange"
    positions = "; ".join(f"{name_ranks([rank])} {_does(place)}" for rank, place in sorted(found.items()))
    quiet = data.get("quiet_s")
    fields: dict[str, Any] = {"waiting": waiting, "positions": positions or text, "reason": reason}
    fields |= {"seconds": round(quiet) if isinstance(quiet, int | float) else None}
    own = {_does(found[rank]) for rank in culprits if rank in found}
    call = next((_where(found[rank]) for rank in waiting if rank in found), None)
    fields |= {"call": call, "own": own.pop()} if len(own) == 1 and call else {"undecided": positions or text}
    doing = {str(place.get("doing")) for place in found.values()}
    kind = _kind(reason, doing, bool(data.get("circles")))
    if kind == "stall.left-common-path":
        fields["why"] = text.rpartition("; ")[2]
    elif kind == "stall.cycle":
        fields["calls"] = text.rpartition(": ")[2]
    elif kind == "stall.root-differs":
        fields |= {"root_call": call, "roots": (text.rpartition(": ")[2],)}
    return make_fact(kind, fields, ranks=culprits, source="watch")


def _kind(reason: str, doing: set[str], has_circles: bool) -> str:
    if reason in ("stopped", "leaving"):
        return {"stopped": "stall.stopped", "leaving": "stall.does-not-end"}[reason]
    if reason in _PATHS:
        return "stall.left-common-path"
    if reason == "root":
        return "stall.root-differs"
    if has_circles:
        return "stall.cycle"
    if "data" in doing:
        return "stall.waits-for-data"
    return "stall.waits-for-peers" if "connect" in doing else "stall.waits-for-rank"


def _does(place: Mapping[str, Any]) -> str:
    under = f", under `{place['condition']}`" if place.get("condition") else ""
    if place.get("call"):
        return f"waits in {_where(place)}{under}"
    if place.get("doing") == "data":
        workers = place.get("workers") or ()
        inside = f", whose worker is in {', '.join(map(str, workers))}" if workers else ""
        return f"waits for its data loader at {_line(place)}{inside}"
    if place.get("doing") in ("stopped", "ended"):
        return {"stopped": "is stopped by a signal", "ended": "has ended"}[str(place["doing"])]
    return f"is in {place.get('function', 'the script')}() at {_line(place)}{under}"


def _where(place: Mapping[str, Any]) -> str:
    return f"{place.get('call', 'a collective')} at {_line(place)}"


def _line(place: Mapping[str, Any]) -> str:
    return f"{str(place.get('file', '?')).rsplit('/', 1)[-1]}:{place.get('line', '?')}"


def _of_network(text: str, ranks: tuple[int, ...]) -> list[Fact]:
    for name, form in (("host-lost", _HOST), ("path-broken", _PATH), ("not-acknowledged", _UNHEARD), ("no-answer", _UNANSWERED)):  # fmt: skip
        if (match := form.match(text)) is not None:
            fields: dict[str, Any] = dict(match.groupdict())
            for number in ("bytes", "sender", "rank"):
                if number in fields:
                    fields[number] = int(fields[number])
            for several in ("ranks_one", "ranks_other"):
                if several in fields:
                    fields[several] = tuple(map(int, fields[several].split(", ")))
            return [make_fact(f"network.{name}", fields, ranks=ranks, source="watch")]
    return []


def _ranks(found: Any) -> tuple[int, ...]:
    return tuple(rank for rank in found or () if isinstance(rank, int))
