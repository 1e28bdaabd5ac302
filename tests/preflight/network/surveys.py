"""Surveys made up for tests of the judgement: who answered whom, written as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phalanx.preflight.network.nodes import Node
from phalanx.preflight.network.survey import Survey
from phalanx.preflight.network.talks import Called

PORT = 41000


def node(number: int, **more: Any) -> Node:
    """A host with one address."""
    return Node(f"h{number}", number, (f"10.0.0.{10 + number}",), interfaces=("eth0",), stores=number == 0, **more)


def survey(
    count: int,
    failing: Mapping[tuple[int, int], str] | None = None,
    *,
    arrived: tuple[tuple[int, int], ...] = (),
    given: Mapping[int, str] | None = None,
    large: Mapping[tuple[int, int], str] | None = None,
) -> Survey:
    """All pairs answer but those given; `arrived` are calls that are half open at the other end; `given` are calls to the store's port."""
    nodes = [node(number) for number in range(count)]
    seen = Survey(nodes, 29500)
    seen.listening = {
        number: {
            "ports": [{"port": PORT, "family": "ipv4", "kind": "any"}, {"port": 29500, "family": "ipv4", "given": True}]
        }
        for number in range(count)
    }
    failing, large, given = failing or {}, large or {}, given or {}
    for one in range(count):
        for other in range(count):
            if one == other:
                continue
            outcome = failing.get((one, other), "ok")
            address = nodes[other].address
            answered = outcome == "ok"
            seen.calls.append(
                Called(
                    one, other, "mesh", address, PORT, outcome, peer=f"h{other}" if answered else None, local=nodes[one].address,
                    saw=nodes[one].address if answered else None, large=large.get((one, other), "ok"), rtt_us=100,
                )
            )  # fmt: skip
            port_outcome = given.get(other, outcome)
            seen.calls.append(Called(one, other, "given", address, 29500, port_outcome, peer=f"h{other}"))
    for source, target in arrived:
        seen.half_open.setdefault(target, []).append({"port": PORT, "from": nodes[source].address})
    return seen


def to_host(count: int, host: int, outcome: str) -> dict[tuple[int, int], str]:
    """Every call to one host fails."""
    return {(other, host): outcome for other in range(count) if other != host}


def from_host(count: int, host: int, outcome: str) -> dict[tuple[int, int], str]:
    """Every call of one host fails."""
    return {(host, other): outcome for other in range(count) if other != host}
