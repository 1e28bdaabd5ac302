"""An address or a hardware address that two hosts have. Bridges of containers have the same everywhere, and may."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.model.ranks import name_all
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import INNER, HostFacts, one_per_network
from phalanx.preflight.options import CheckOptions


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Only what leads outside counts."""
    addresses: dict[str, list[tuple[HostFacts, str]]] = {}
    hardware: dict[str, list[tuple[HostFacts, str]]] = {}
    for one in one_per_network(all_facts):
        for name, facts in one.interfaces.items():
            if facts["loopback"] or not facts["up"] or name.startswith(INNER):
                continue
            outward = [ipaddress.ip_interface(written) for written in facts["addresses"]]
            for address in outward:
                if not address.ip.is_link_local and not address.ip.is_loopback:
                    addresses.setdefault(str(address.ip), []).append((one, name))
            if outward and facts["mac"].strip("0:") and not facts["mac"].startswith("ee:ee:ee"):
                hardware.setdefault(facts["mac"], []).append((one, name))
    for shared, owners in addresses.items():
        if len({one.label for one, _ in owners}) > 1:
            labels = tuple(dict.fromkeys(one.label for one, _ in owners))
            where = name_all(f"{one.label} ({name})" for one, name in owners)
            host, interface = owners[-1][0].host, owners[-1][1]
            yield observe("duplicate-address", labels, address=shared, there=where, interface=interface, host=host)
    for mac, owners in hardware.items():
        if len({one.label for one, _ in owners}) > 1 and _share_a_network(owners):
            labels = tuple(dict.fromkeys(one.label for one, _ in owners))
            where = name_all(f"{one.label} ({name})" for one, name in owners)
            host, interface = owners[-1][0].host, owners[-1][1]
            yield observe(
                "duplicate-hardware-address", labels, address=mac, there=where, interface=interface, host=host
            )


def _share_a_network(owners: Sequence[tuple[HostFacts, str]]) -> bool:
    seen: set[str] = set()
    for one, name in owners:
        networks = {str(ipaddress.ip_interface(w).network) for w in one.interfaces[name]["addresses"] if ":" not in w}
        if networks & seen:
            return True
        seen |= networks
    return False
