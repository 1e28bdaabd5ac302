"""Who takes part in the network probes, and at which address each would be called by the job."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from phalanx.preflight.host_facts import INNER, HostFacts, one_per_network

_PINNED = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
_MOST_ADDRESSES = 4


@dataclass(frozen=True, slots=True)
class Node:
    """One network stack: the target that speaks for it, and its addresses, the one that the job would use first."""

    label: str
    number: int
    addresses: tuple[str, ...]
    pinned: str = ""  # the variable that chose the first address
    interfaces: tuple[str, ...] = ()  # of each address
    mtu: int = 1500
    stores: bool = False  # rank 0 runs here
    subnet: str = ""  # of the first address
    closing: tuple[tuple[str, str], ...] = ()  # chain and rule of its own firewall that turn packets away

    @property
    def address(self) -> str:
        """Where the job would call it."""
        return self.addresses[0]

    @property
    def interface(self) -> str:
        """That of the first address."""
        return self.interfaces[0] if self.interfaces else ""

    def interface_of(self, address: str) -> str:
        """The interface that has this address."""
        return dict(zip(self.addresses, self.interfaces, strict=False)).get(address, "")

    def filters(self, hook: str) -> tuple[str, ...]:
        """Rules of its own firewall on what comes in (`input`) or goes out (`output`)."""
        return tuple(rule for chain, rule in self.closing if hook in chain.lower())

    def has_family(self, family: int) -> bool:
        """Whether it has an address of a family, 4 or 6."""
        return any(family_of(one) == family for one in self.addresses)


def family_of(address: str) -> int:
    """4 or 6."""
    return 6 if ":" in address else 4


def find_nodes(all_facts: Mapping[str, HostFacts]) -> list[Node]:
    """One node for each network stack that has an address."""
    alone = one_per_network(all_facts.values())
    store = store_network(all_facts.values())
    shared = _networks(alone)
    nodes: list[Node] = []
    for host_facts in alone:
        addresses, pinned = _ordered_addresses(host_facts, shared)
        if not addresses:
            continue
        places = [_interface_of(host_facts, one) for one in addresses]
        names, mtu = tuple(name for name, _ in places), places[0][1]
        stores = store is not None and host_facts.network == store
        subnet = next(
            (written for written in _written(host_facts) if written.split("/")[0] == addresses[0]), addresses[0]
        )
        network = str(ipaddress.ip_interface(subnet).network)
        rows = host_facts.section("firewall").get("closing", ())
        closing = tuple((str(row.get("chain", "")), str(row.get("rule", ""))) for row in rows)
        nodes.append(Node(host_facts.label, len(nodes), addresses, pinned, names, mtu, stores, network, closing))
    return nodes


def store_network(all_facts: Iterable[HostFacts]) -> str | None:
    """The network stack that rank 0 runs in; else the one that owns MASTER_ADDR."""
    listed = list(all_facts)
    for host_facts in listed:
        if 0 in host_facts.ranks:
            return host_facts.network
    for host_facts in listed:
        place = host_facts.place
        if place is None or place.is_drivers:
            continue
        addresses = (host_facts.lookup(place.address) or {"addresses": [place.address]})["addresses"]
        if any(host_facts.owns(address) and not _is_loopback(address) for address in addresses):
            return host_facts.network
    return None


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _networks(all_facts: Sequence[HostFacts]) -> dict[str, int]:
    """How many hosts have an address in each network."""
    counts: dict[str, int] = {}
    for host_facts in all_facts:
        for network in {str(ipaddress.ip_interface(one).network) for one in _written(host_facts)}:
            counts[network] = counts.get(network, 0) + 1
    return counts


def _written(host_facts: HostFacts) -> list[str]:
    """Addresses with their lengths that others could call: not loopback, link-local or inside the host. Of lo only if there is no other:
    hosts that tell their routes themselves have their address there."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for name, facts in host_facts.interfaces.items():
        if name.startswith(INNER) or not facts.get("up"):
            continue
        for written in facts.get("addresses", ()):
            address = ipaddress.ip_interface(written).ip
            if not address.is_loopback and not address.is_link_local:
                found[bool(facts.get("loopback"))].append(written)
    return found[False] or found[True]


def _ordered_addresses(host_facts: HostFacts, shared: Mapping[str, int]) -> tuple[tuple[str, ...], str]:
    """What a variable pins, then what the own name says, then what most others are near to."""
    usable = _written(host_facts)
    plain = [str(ipaddress.ip_interface(one).ip) for one in usable]
    first: list[str] = []
    pinned = ""
    for variable in _PINNED:
        names = (host_facts.variable(variable) or "").lstrip("=^").split(",")
        if (host_facts.variable(variable) or "").startswith("^"):
            continue
        for name in names:
            facts = host_facts.interfaces.get(name.strip())
            if facts and not facts.get("loopback") and not first:
                own = [str(ipaddress.ip_interface(one).ip) for one in facts.get("addresses", ())]
                first = [one for one in own if not ipaddress.ip_address(one).is_link_local]
                pinned = f"{variable}={host_facts.variable(variable)}" if first else ""
    own_name = str(host_facts.section("names").get("own") or "")
    looked_up = host_facts.lookup(own_name) or {}
    named = [str(one) for one in looked_up.get("addresses", ()) if str(one) in plain]
    near = sorted(usable, key=lambda one: (-shared[str(ipaddress.ip_interface(one).network)], ":" in one))
    ordered = [*first, *named, *(str(ipaddress.ip_interface(one).ip) for one in near)]
    return tuple(dict.fromkeys(ordered))[:_MOST_ADDRESSES], pinned


def _interface_of(host_facts: HostFacts, address: str) -> tuple[str, int]:
    for name, facts in host_facts.interfaces.items():
        if any(str(ipaddress.ip_interface(one).ip) == address for one in facts.get("addresses", ())):
            return name, int(facts.get("mtu") or 1500)
    return "", 1500
