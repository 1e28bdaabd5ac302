"""Witnesses made by hand, for comparisons that need no real host."""

from __future__ import annotations

from typing import Any

from phalanx.model.template import fill
from phalanx.preflight.check_fact import CheckFact
from phalanx.preflight.findings import explain
from phalanx.preflight.host_facts import HostFacts, rank_of


def interface(*addresses: str, up: bool = True, loopback: bool = False, mac: str = "") -> dict[str, Any]:
    facts = {"index": 1, "up": up, "running": up, "loopback": loopback, "mtu": 1500, "mac": mac}
    return {**facts, "addresses": list(addresses)}


def host_facts(
    label: str, variables: dict[str, str] | None = None, interfaces: dict[str, Any] | None = None, **sections: Any
) -> HostFacts:
    """A host with loopback and one address, 10.0.0.N for `hN`, that knows its own name."""
    number = "".join(character for character in label if character.isdigit()) or "0"
    own = f"10.0.0.{number}"
    if interfaces is None:
        interfaces = {"lo": interface("127.0.0.1/8", loopback=True), "eth0": interface(f"{own}/24")}
    facts: dict[str, Any] = {
        "who": {"hostname": label, "boot": label, "network": label, "user": "alice", "uid": 1000, "pid": 1},
        "environment": {"variables": variables or {}, "others": []},
        "interfaces": interfaces,
        "names": {"own": label, "asked": {label: {"addresses": [own], "bindable": [own], "from": {own: own}}}},
        "limits": {
            "nofile": [1024, 4096],
            "shm": {"size": 1 << 34, "free": 1 << 34, "read_only": 0},
            "infiniband": [],
            "gpus": 0,
        },
        "ports": {"listening": [], "unprivileged_from": 1024},
        "versions": {"python": "3.11.2", "packages": {"torch": "2.13.0"}},
    }
    facts.update(sections)
    rank = rank_of(variables or {})
    return HostFacts(label, label, (rank,) if rank is not None else (), facts)


def summary_of(found: CheckFact) -> str:
    """What the rule says of it."""
    rule = explain(found.fact)
    assert rule is not None, found.fact
    return fill(rule.summary, found.fact.texts())
