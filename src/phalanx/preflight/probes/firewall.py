"""Firewall rules that name the store's port, where they may be read. What really passes is for the network probes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.agreement import several_hosts
from phalanx.preflight.check_fact import STORE_CALLED, CheckFact, observe
from phalanx.preflight.host_facts import HostFacts, one_per_network
from phalanx.preflight.options import CheckOptions


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Only between hosts: nobody filters loopback."""
    if not several_hosts(all_facts):
        return
    for one in one_per_network(all_facts):
        firewall = one.section("firewall")
        port = str(one.place.number or "") if one.place is not None else ""
        if not firewall.get("readable"):
            yield Unchecked(f"the firewall's rules on {one.label}", "root, and nft or iptables-save")
            continue
        if not port.isdigit():
            continue
        for row in firewall.get("closing", ()):
            if row["hook"] == "input" and _is_listener(one, all_facts) and names_port(row["rule"], int(port)):
                rule = f"{row['rule']} (table {row['table']}, chain {row['chain']})"
                yield observe(
                    "firewall-rule-on-store-port", (one.label,), port=int(port), rule=rule, unless=STORE_CALLED
                )
                break


def _is_listener(one: HostFacts, all_facts: Sequence[HostFacts]) -> bool:
    """Whether the store would be opened on this host; where no ranks are known, it may be any."""
    ranked = [other for other in all_facts if other.ranks]
    return not ranked or any(0 in other.ranks and other.network == one.network for other in ranked)


def names_port(rule: str, port: int) -> bool:
    """Whether a rule of nft or iptables is about this port, alone, in a set or in a range."""
    match = re.search(r"(?:dport|--dports?)\s+(?:!=\s*|!\s*)?(\{[^}]*\}|[\d:,-]+)", rule)
    if match is None or "!=" in match[0] or "! " in rule:
        return False
    for part in match[1].strip("{} ").split(","):
        first, _, last = part.strip().replace(":", "-").partition("-")
        if first.isdigit() and int(first) <= port <= int(last if last.isdigit() else first):
            # A rule for some senders or interfaces only may have nothing to do with this job.
            return not re.search(
                r"\biif|\boif|\bsaddr\b|ct state|limit rate|(?:^|\s)-[si]\s|-m (?:limit|conntrack|state)", rule
            )
    return False
