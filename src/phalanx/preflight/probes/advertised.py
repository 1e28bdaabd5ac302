"""The address that each library would give to its peers: no loopback, no address that two hosts have, one family."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Any

from phalanx.model import Unchecked
from phalanx.model.ranks import name_all
from phalanx.preflight.advertised import gloo_address, mpi_addresses, nccl_address
from phalanx.preflight.agent.names import NO_ANSWER
from phalanx.preflight.agreement import several_hosts, uses
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import INNER, HostFacts, one_per_network
from phalanx.preflight.options import CheckOptions

_CHOOSERS = {"Gloo": ("gloo", gloo_address), "NCCL": ("nccl", nccl_address)}
_VARIABLES = {"Gloo": "GLOO_SOCKET_IFNAME", "NCCL": "NCCL_SOCKET_IFNAME"}


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Only between hosts: on one machine every address will do."""
    if not several_hosts(all_facts):
        return
    hosts = one_per_network(all_facts)
    yield from _own_names([one for one in hosts if _asks_for_own_name(one, options)], hosts)
    for title, (library, choose) in _CHOOSERS.items():
        if library == "nccl" and not _may_use_nccl(hosts, options):
            continue
        chosen = hosts if library == "nccl" else [one for one in hosts if _uses_gloo(one, options)]
        told = {one.label: address for one in chosen if (address := choose(one)) is not None}
        yield from _judge(title, told, hosts)
    if any(uses(one, "mpi", options.libraries) for one in hosts):
        yield from _mpi(hosts)
        yield from _mpi_bridges(hosts)


def _may_use_nccl(hosts: Sequence[HostFacts], options: CheckOptions) -> bool:
    """Without a GPU and without a variable of NCCL's its choice is of no interest."""
    if options.libraries:
        return "nccl" in options.libraries
    return any(
        one.section("limits").get("gpus") or any(name.startswith("NCCL_") for name in one.variables) for one in hosts
    )


def _uses_gloo(one: HostFacts, options: CheckOptions) -> bool:
    if options.libraries:
        return bool(options.libraries & {"gloo", "horovod", "torch"})
    return not (one.variable("TF_CONFIG") and not one.variable("MASTER_ADDR"))


def _asks_for_own_name(one: HostFacts, options: CheckOptions) -> bool:
    """Gloo and MPI look their own host up; a named interface spares Gloo that, and gRPC goes by its list of addresses."""
    if uses(one, "mpi", options.libraries):
        return True
    if options.libraries and not options.libraries & {"gloo", "horovod", "torch"}:
        return False
    is_named = bool(one.variable("GLOO_SOCKET_IFNAME") or one.variable("HOROVOD_GLOO_IFACE"))
    return not is_named and not (one.variable("TF_CONFIG") and not one.variable("MASTER_ADDR"))


def _own_names(asking: Sequence[HostFacts], hosts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    """A host's own name: missing, or of an address that is not (any more) its own."""
    for one in asking:
        name = str(one.section("names").get("own") or "")
        found = one.lookup(name)
        if found is None or found.get("error") == NO_ANSWER:  # a name server that is slow is said to be that
            continue
        values: dict[str, Any] = {
            "name": name,
            "address": next(iter(one.addresses()), ""),
            "interface": _interface(one),
        }
        if not found["addresses"]:
            yield observe(
                "own-name-missing", (one.label,), error=found.get("error") or "no address", own=values, **values
            )
        elif not found["bindable"]:
            seen, has = ", ".join(found["addresses"]), ", ".join(one.addresses()) or "no address"
            yield observe("own-name-stale", (one.label,), seen=seen, has=has, own=values, **values)
        else:
            yield from _as_others_see(one, name, hosts)


def _as_others_see(one: HostFacts, name: str, hosts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    """That others cannot resolve a name need not matter; that they get another host's address does."""
    if sum(str(other.section("names").get("own")) == name for other in hosts) > 1:
        return  # two hosts of one name: neither is wrong
    for other in hosts:
        addresses = [] if other is one else list((other.resolved.get(name) or {}).get("addresses", ()))
        outside = [a for a in addresses if not ipaddress.ip_address(a.partition("%")[0]).is_loopback]
        if outside and not any(one.owns(a) for a in outside):
            owner = next((third.host for third in hosts if any(third.owns(a) for a in outside)), None)
            yield observe(
                "name-of-peer-stale",
                (other.label,),
                name=name,
                seen=", ".join(outside),
                owner=owner,
                nobody=owner is None,
                peer=one.label,
                has=", ".join(one.addresses()[:3]),
                address=next(iter(one.addresses()), ""),
            )


def _judge(title: str, told: dict[str, str], hosts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    by_label = {one.label: one for one in hosts}
    variable = _VARIABLES[title]
    local = {label: a for label, a in told.items() if ipaddress.ip_address(a).is_loopback}
    for label, address in local.items():
        one = by_label[label]
        if one.variable(variable):
            continue  # said where named interfaces are looked at
        name = str(one.section("names").get("own") or "")
        if title == "Gloo" and not (one.lookup(name) or {}).get("bindable"):
            continue  # said already: the name does not resolve, or is stale
        yield observe(
            "loopback-told",
            (label,),
            library=title,
            address=address,
            by_own_name=title == "Gloo",
            variable=variable,
            interface=_interface(one),
            name=name,
            own=("name", "interface"),
        )
    outside = {label: a for label, a in told.items() if label not in local}
    shared: dict[str, list[str]] = {}
    for label, address in outside.items():
        shared.setdefault(address, []).append(label)
    for address, labels in shared.items():
        if len(labels) > 1:
            interface = _interface(by_label[labels[0]], without=address)
            yield observe(
                "same-address-told-twice",
                tuple(labels),
                library=title,
                address=address,
                variable=variable,
                interface=interface,
            )
    families = {label: ipaddress.ip_address(a).version for label, a in outside.items()}
    if len(set(families.values())) > 1:
        six = [f"{label} ({outside[label]})" for label, family in families.items() if family == 6]
        four = [f"{label} ({outside[label]})" for label, family in families.items() if family == 4]
        few = min((six, four), key=len)
        yield observe(
            "address-family-mixed",
            tuple(entry.partition(" (")[0] for entry in few) if len(six) != len(four) else (),
            tuple(families) if len(six) == len(four) else (),
            library=title,
            six=name_all(six),
            four=name_all(four),
            variable=variable,
        )


def _mpi(hosts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    """Open MPI tells all addresses, and a peer that has the same one takes itself for the other."""
    shared: dict[str, list[HostFacts]] = {}
    for one in hosts:
        for address in mpi_addresses(one):
            if not ipaddress.ip_address(address).is_link_local:
                shared.setdefault(address, []).append(one)
    for address, owners in shared.items():
        if len(owners) > 1:
            name = next(
                (
                    n
                    for n, f in owners[0].interfaces.items()
                    if any(a.partition("/")[0] == address for a in f["addresses"])
                ),
                "",
            )
            yield observe(
                "docker0-same-address",
                tuple(one.label for one in owners),
                address=address,
                interface=name,
                wanted=_interface(owners[0], without=address),
            )


def _mpi_bridges(hosts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    """Bridges inside of a host that Open MPI would tell its peers of: nobody outside reaches them, whatever their addresses."""
    told: dict[str, list[HostFacts]] = {}
    for one in hosts:
        addresses = set(mpi_addresses(one))
        for name, facts in one.interfaces.items():
            own = {written.partition("/")[0] for written in facts["addresses"]}
            if name.startswith(INNER) and own & addresses:
                told.setdefault(name, []).append(one)
    for name, owners in told.items():
        addresses_told = [a for one in owners for a in mpi_addresses(one)]
        if len(set(addresses_told)) == len(addresses_told):  # the same address on two hosts is said above
            labels = tuple(one.label for one in owners)
            yield observe("mpi-uses-a-bridge", labels, interface=name, wanted=_interface(owners[0]))


def _interface(host_facts: HostFacts, without: str = "") -> str:
    """An interface that leads outside, to advise."""
    for name, facts in host_facts.interfaces.items():
        own = [written.partition("/")[0] for written in facts["addresses"]]
        outward = [a for a in own if not ipaddress.ip_address(a).is_link_local]
        if facts["up"] and not facts["loopback"] and outward and without not in own and not name.startswith(INNER):
            return name
    return "an interface that the hosts share"
