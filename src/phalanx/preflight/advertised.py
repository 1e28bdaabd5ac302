"""Which address a library would give to its peers on a host with these settings, chosen as the library itself chooses it.

Gloo (as PyTorch uses it) takes the first address of the interface named by GLOO_SOCKET_IFNAME, exactly; else the first address
that the host's own name resolves to and that can be bound; else loopback. NCCL takes the first address of the first interface
that NCCL_SOCKET_IFNAME admits (prefixes; `=` exact, `^` all but); else an `ib…`, else anything but docker, lo, virbr; else those.
Open MPI tells all addresses of all interfaces but loopback, unless btl_tcp_if_include or _exclude say otherwise.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from phalanx.preflight.host_facts import HostFacts

_NCCL_LAST = ("docker", "lo", "virbr")
LOOPBACK = "127.0.0.1"


def gloo_address(host_facts: HostFacts, variable: str = "GLOO_SOCKET_IFNAME") -> str | None:
    """The first address that Gloo would use; None where it would fail."""
    if (value := host_facts.variable(variable)) is not None and value != "":
        facts = host_facts.interfaces.get(value.split(",")[0])
        return next(iter(_addresses(facts)), None) if facts is not None else None
    found = host_facts.lookup(str(host_facts.section("names").get("own") or ""))
    if found is None:
        return None
    return next(iter(found["bindable"]), LOOPBACK)


def nccl_interfaces(host_facts: HostFacts, value: str | None = None) -> list[str]:
    """The interfaces that NCCL's sockets would use, in order; empty where it would fail."""
    value = (host_facts.variable("NCCL_SOCKET_IFNAME") or "") if value is None else value
    usable = [name for name, facts in host_facts.interfaces.items() if facts["up"] and _of_family(host_facts, facts)]
    if len(value) > 1:
        return [name for name in usable if nccl_admits(value, name)]
    chosen = [name for name in usable if name.startswith("ib")]
    chosen = chosen or [name for name in usable if not name.startswith(_NCCL_LAST)]
    for last in _NCCL_LAST:
        chosen = chosen or [name for name in usable if name.startswith(last)]
    return chosen


def nccl_admits(value: str, interface: str) -> bool:
    """Whether a value of NCCL_SOCKET_IFNAME admits an interface."""
    inverted = value.startswith("^")
    rest = value[1:] if inverted else value
    exact = rest.startswith("=")
    parts = [part.partition(":")[0] for part in (rest[1:] if exact else rest).split(",") if part]
    matches = any(interface == part if exact else interface.startswith(part) for part in parts)
    return matches != inverted


def nccl_address(host_facts: HostFacts) -> str | None:
    """The address that NCCL would use for its bootstrap."""
    chosen = nccl_interfaces(host_facts)
    return next(iter(_of_family(host_facts, host_facts.interfaces[chosen[0]])), None) if chosen else None


def _of_family(host_facts: HostFacts, facts: Mapping[str, Any]) -> list[str]:
    family = host_facts.variable("NCCL_SOCKET_FAMILY") or ""
    addresses = [a for a in _addresses(facts) if not (ipaddress.ip_address(a).version == 6 and facts["loopback"])]
    if family in ("AF_INET", "AF_INET6"):
        return [a for a in addresses if ipaddress.ip_address(a).version == (6 if family == "AF_INET6" else 4)]
    return addresses


def mpi_addresses(host_facts: HostFacts) -> list[str]:
    """The addresses that Open MPI's TCP transport would tell."""
    included = host_facts.variable("OMPI_MCA_btl_tcp_if_include")
    excluded = host_facts.variable("OMPI_MCA_btl_tcp_if_exclude") or "127.0.0.1/8,sppp"
    found: list[str] = []
    for name, facts in host_facts.interfaces.items():
        if not facts["up"]:
            continue
        for address in _addresses(facts):
            listed = _is_listed(included if included is not None else excluded, name, address)
            if listed == (included is not None) and not ipaddress.ip_address(address).is_loopback:
                found.append(address)
    return found


def _is_listed(value: str, interface: str, address: str) -> bool:
    """Open MPI lists interfaces by name or as networks."""
    for part in value.split(","):
        if part.strip() == interface:
            return True
        try:
            if "/" in part and ipaddress.ip_address(address) in ipaddress.ip_network(part.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False


def _addresses(facts: Mapping[str, Any] | None) -> list[str]:
    """In the order of getifaddrs: IPv4 first, then IPv6; link-local ones last, for they are only told as a last resort."""
    written = [ipaddress.ip_interface(one).ip for one in (facts or {}).get("addresses", ())]
    return [str(one) for one in sorted(written, key=lambda one: (one.version, one.is_link_local))]


def told_by(host_facts: HostFacts, libraries: Iterable[str]) -> dict[str, str | None]:
    """By library, the address that the others would be told."""
    choose = {"gloo": gloo_address, "nccl": nccl_address}
    return {library: choose[library](host_facts) for library in libraries if library in choose}
