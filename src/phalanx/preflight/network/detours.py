"""Judges routes: a host whose kernel sends another way than the one that joins the hosts, by a static route or a rule of policy routing."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.network.blocked import Table
from phalanx.preflight.network.nodes import Node


def judge_detours(table: Table) -> list[CheckFact]:
    """Of what does not arrive, that which the sender's own kernel leads astray."""
    found = []
    nodes = table.survey.nodes
    for number in sorted({pair[0] for pair in table.lost}):
        astray = {
            pair[1]: way
            for pair in table.lost
            if pair[0] == number
            and (way := table.survey.ways.get(pair)) is not None
            and _is_detour(nodes[number], nodes[pair[1]], way)
        }
        if astray:
            found.append(_fact(table, number, astray))
            # What it answers goes the same way as what it sends.
            table.explain([pair for pair in table.lost if number in pair and {*pair} & set(astray)])
    return found


def _is_detour(here: Node, there: Node, told: Mapping[str, Any]) -> bool:
    """On one link, and yet through a gateway, on another interface, or nowhere; or by a rule for the source only."""
    way, plain = told["way"], told["plain"]
    if told["rules"] and _ends(way) != _ends(plain):
        return True
    if not here.subnet or ipaddress.ip_address(there.address) not in ipaddress.ip_network(here.subnet, strict=False):
        return False
    return bool("gateway" in way or "error" in way)


def _ends(way: Mapping[str, Any]) -> tuple[Any, ...]:
    return way.get("interface"), way.get("gateway"), way.get("error")


def _fact(table: Table, number: int, astray: Mapping[int, Mapping[str, Any]]) -> CheckFact:
    node = table.survey.nodes[number]
    others: Sequence[int] = sorted(astray)
    told = astray[others[0]]
    way = told["way"]
    fields: dict[str, Any] = {
        "others": table.name(others),
        "own": node.address,
        "gateway": way.get("gateway"),
        "interface": way.get("interface"),
        "nowhere": "error" in way,
    }
    if told["rules"] and _ends(way) != _ends(told["plain"]):
        rule = min(told["rules"], key=lambda one: int(one["priority"]))
        fields |= {"source": rule["from"], "table": rule["table"], "priority": rule["priority"]}
        return observe("policy-route", table.label(number), table.label(*others), **fields)
    address = ", ".join(table.survey.nodes[other].address for other in others)
    return observe(
        "route-detour", table.label(number), table.label(*others), address=address, subnet=node.subnet, **fields
    )
