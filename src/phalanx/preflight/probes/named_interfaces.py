"""Interfaces that variables name: there, up, with an address, leading outside, and in one network on all hosts."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.model.ranks import name_all
from phalanx.preflight.advertised import nccl_admits, nccl_interfaces
from phalanx.preflight.agreement import several_hosts
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import INNER, HostFacts, one_per_network
from phalanx.preflight.options import CheckOptions

# Lists of exact names, separated by commas.
_EXACT = ("GLOO_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE", "TP_SOCKET_IFNAME", "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_prte_if_include")  # fmt: skip
_NCCL = ("NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME")


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """On every host; what two ranks of a host are told alike is said once."""
    seen: set[tuple[str, str, str]] = set()
    many = several_hosts(all_facts)
    for one in all_facts:
        if not one.interfaces:
            continue
        for variable in (*_EXACT, *_NCCL):
            value = one.variable(variable)
            if value and (one.network, variable, value) not in seen and not _is_nccl_syntax_elsewhere(variable, value):
                seen.add((one.network, variable, value))
                yield from _one(one, variable, value, many)
    for variable in _EXACT:
        yield from _networks(one_per_network(all_facts), variable)


def _is_nccl_syntax_elsewhere(variable: str, value: str) -> bool:
    """Said by a lint of its own."""
    return variable not in _NCCL and value[:1] in "^="


def _one(one: HostFacts, variable: str, value: str, many: bool) -> Iterable[CheckFact]:
    has = ", ".join(name for name, facts in one.interfaces.items() if facts["addresses"]) or "none with an address"
    good = _outward(one)
    best = good[0] if good else ""
    if variable in _NCCL:
        matching = [name for name in one.interfaces if nccl_admits(value, name)]
        chosen = matching if not value.startswith("^") else []
        missing = [value] if not matching else []
        taken = nccl_interfaces(one, value)
        if many and value.startswith("^") and taken and one.interfaces[taken[0]]["loopback"]:
            right = f"{value},{taken[0]}" if len(taken) > 1 else best
            yield observe("interface-loopback", (one.label,), variable=variable, value=value, good=right)
    else:
        parts = value.split(",")
        chosen = [part for part in parts if part in one.interfaces]
        missing = [part for part in parts if part not in one.interfaces and not _is_network_of(one, part)]
    for part in missing:
        yield observe("interface-missing", (one.label,), variable=variable, value=part, has=has, good=best)
    for name in chosen:
        facts = one.interfaces[name]
        if not facts["up"] or not facts["running"]:
            yield observe(
                "interface-not-usable",
                (one.label,),
                variable=variable,
                value=value,
                interface=name,
                down=not facts["up"],
                no_carrier=bool(facts["up"]),
                good=best,
            )
        elif not facts["addresses"]:
            yield observe(
                "interface-not-usable",
                (one.label,),
                variable=variable,
                value=value,
                interface=name,
                no_address=True,
                good=best,
            )
    if many and chosen and all(one.interfaces[name]["loopback"] for name in chosen):
        yield observe("interface-loopback", (one.label,), variable=variable, value=value, good=best)


def _is_network_of(one: HostFacts, part: str) -> bool:
    """Open MPI also takes networks: `10.0.0.0/8`."""
    try:
        wanted = ipaddress.ip_network(part, strict=False)
    except ValueError:
        return False
    return "/" in part and any(ipaddress.ip_address(address) in wanted for address in one.addresses(loopback=True))


def _networks(hosts: Sequence[HostFacts], variable: str) -> Iterable[CheckFact]:
    """Whether the interfaces chosen lie in one network; where a host has one in the majority's network, it is told."""
    places: dict[str, list[HostFacts]] = {}
    for one in hosts:
        name = (one.variable(variable) or "").split(",")[0]
        facts = one.interfaces.get(name)
        if facts is None or facts["loopback"] or not facts["up"]:
            continue
        four = [ipaddress.ip_interface(written) for written in facts["addresses"] if ":" not in written]
        if four:
            places.setdefault(str(four[0].network), []).append(one)
    if len(places) < 2:
        return
    network, most = max(places.items(), key=lambda item: len(item[1]))
    for other, there in places.items():
        if other == network:
            continue
        for one in there:
            better = _in_network(one, network)
            back = next((found for peer in most if (found := _in_network(peer, other))), None)
            if better is None and back is None:
                continue  # no network that both have: they may well be routed
            yield observe(
                "interface-differs",
                (one.label,) if len(most) > len(there) else (),
                tuple(peer.label for peer in hosts),
                variable=variable,
                value=one.variable(variable),
                host=one.label,
                other=other,
                most=name_all(peer.label for peer in most),
                network=network,
                change=one.label if better else name_all(p.label for p in most),
                good=better or back or "",
            )


def _in_network(host_facts: HostFacts, network: str) -> str | None:
    wanted = ipaddress.ip_network(network)
    for name, facts in host_facts.interfaces.items():
        if any(ipaddress.ip_interface(written).network == wanted for written in facts["addresses"]):
            return name
    return None


def _outward(host_facts: HostFacts) -> list[str]:
    return [
        name
        for name, facts in host_facts.interfaces.items()
        if facts["up"] and facts["addresses"] and not facts["loopback"] and not name.startswith(INNER)
    ]
