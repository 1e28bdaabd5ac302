"""What a rank can say of its own way to the store when rank 0 did not come to the check: its link, its routes, its firewall, and what a call gives."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.network.talks import Called, called_of
from phalanx.preflight.network.words import done_to, icmp_words
from phalanx.preflight.targets import AgentError, Target, this_machine

_SECTIONS = ("interfaces", "firewall")
_OTHERS = "the other ranks"


def seen_from_here(store: tuple[str, int], *, alone: bool, size: int) -> list[CheckFact]:
    """What a call to the very address and port gives; the most telling of what explains it on this host."""
    here = this_machine()
    address, port = store
    target = {"id": [0, -1, "store"], "address": address, "port": port}
    args = {"token": "alone", "label": socket.gethostname(), "timeout": 2.0, "targets": [target]}
    try:
        rows = here.ask("connect", args, 10.0)
        facts = here.ask("facts", {"sections": list(_SECTIONS)}, 5.0)[0]
    except (AgentError, LookupError):
        return []
    calls = [called_of(row) for row in rows if "fine" not in row]
    if not calls or calls[0].outcome == "unresolved":
        return []  # the facts say it
    found = _led_astray(here, calls[0]) or _filtered(calls[0], facts)
    if found is None and alone:
        found = _cut_off(calls[0], size)
    return [found or _not_reached(address, port, calls[0])]


def _me() -> tuple[str, ...]:
    return (socket.gethostname(),)


def _led_astray(here: Target, call: Called) -> CheckFact | None:
    """A rule for this host's own address that leads elsewhere than its other routes."""
    source = str((call.route or {}).get("source") or "")
    if call.answered or not call.ip or not source:
        return None
    try:
        told = here.ask("routes", {"pairs": [[source, call.ip]]}, 3.0)[0]
    except (AgentError, LookupError):
        return None
    way, plain = told["way"], told["plain"]
    if not told["rules"] or all(way.get(name) == plain.get(name) for name in ("interface", "gateway", "error")):
        return None
    rule = min(told["rules"], key=lambda one: int(one["priority"]))
    return observe(
        "policy-route",
        _me(),
        others=_OTHERS,
        own=source,
        source=rule["from"],
        table=rule["table"],
        priority=rule["priority"],
        gateway=way.get("gateway"),
        interface=way.get("interface"),
        nowhere="error" in way,
    )


def _filtered(call: Called, facts: Mapping[str, Any]) -> CheckFact | None:
    """A firewall of this host on what goes out, where nothing comes back."""
    rules = [one["rule"] for one in facts.get("firewall", {}).get("closing", ()) if one.get("hook") == "output"]
    if call.outcome not in ("silent", "rejected", "refused") or not rules:
        return None
    return observe(
        "outgoing-blocked",
        _me(),
        how=done_to(call.outcome),
        places=f"{call.ip}:{call.port}",
        others=_OTHERS,
        evidence=tuple((_me()[0], f"its firewall: {rule}") for rule in rules[:3]),
    )


def _cut_off(call: Called, size: int) -> CheckFact | None:
    """No neighbour answers, and of several other ranks none is heard: it is this host, not the one that it calls."""
    if call.outcome != "no-neighbour" or size < 3:
        return None
    route = call.route or {}
    return observe(
        "host-cut-off",
        _me(),
        lonely=_me()[0],
        others=_OTHERS,
        places=f"{call.ip}:{call.port}",
        how=done_to(call.outcome),
        interface=str(route.get("interface") or ""),
        address=str(route.get("source") or ""),
    )


def _not_reached(address: str, port: int, call: Called) -> CheckFact:
    return observe(
        "meeting-place-not-reached",
        _me(),
        address=f"{address}:{port}",
        host=address,
        port=port,
        outcome=call.outcome,
        how=done_to(call.outcome),
        refused=call.outcome == "refused",
        dropped=call.outcome in ("silent", "rejected", "no-neighbour"),
        foreign=call.outcome in ("foreign", "mute", "closed"),
        banner=repr(call.banner.strip()) if call.banner.strip() else None,
        icmp=icmp_words([call]) or None,
    )
