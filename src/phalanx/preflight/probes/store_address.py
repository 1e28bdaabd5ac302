"""Where the ranks are to meet (MASTER_ADDR, torchrun's endpoint, Horovod's rendezvous): set, alike, resolvable, and the address of the host that rank 0 is on."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from phalanx.model import Unchecked
from phalanx.model.ranks import name_all
from phalanx.preflight.agent.names import NO_ANSWER
from phalanx.preflight.agreement import address_for_others, several_hosts, split_of
from phalanx.preflight.check_fact import STORE_REACHED, CheckFact, observe
from phalanx.preflight.host_facts import HostFacts, Place, one_per_network
from phalanx.preflight.options import CheckOptions

_NAME = "MASTER_ADDR"


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """What is wrong with where the ranks are to meet."""
    yield from _missing(all_facts)
    told = [one for one in all_facts if one.place is not None and not (one.place.is_endpoint or one.place.is_drivers)]
    split = split_of(told, lambda one: one.place.address if one.place else None)
    if split is not None:
        zero = _host_of_rank_zero(all_facts)
        address = address_for_others(zero, all_facts) if zero is not None and several_hosts(all_facts) else None
        variable = told[0].place.variable if told[0].place else _NAME
        right = address if split.common is None else None
        is_open = split.common is None and right is None
        yield observe(
            "master-addr-differs",
            split.odd,
            variable=variable,
            zero=address,
            right=right,
            open=is_open,
            **split.fields(),
        )
    places: dict[Place, list[HostFacts]] = {}
    for one in all_facts:
        if one.place is not None and (split is None or one.place.address == split.common):  # the odd ones were named
            places.setdefault(replace(one.place, port=""), []).append(one)
    for place, there in places.items():
        alike = [len(others) for other, others in places.items() if other.variable == place.variable]
        if place.is_endpoint and len(there) < max(alike):
            continue  # that endpoints differ is said where torchrun's settings are compared
        assert there[0].place is not None
        yield from _value(there[0].place, there, all_facts)


def _missing(all_facts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    """Ranks of one job that were told of a world but not where it meets."""
    lacking = [
        one
        for one in all_facts
        if one.variable("RANK") is not None
        and (one.variable("WORLD_SIZE") or "").isdigit()
        and int(one.variable("WORLD_SIZE") or 1) > 1
        and not one.variable(_NAME)
    ]
    if not lacking:
        return
    first = next((one for one in all_facts if 0 in one.ranks), None)
    value = next((one.variable(_NAME) for one in all_facts if one.variable(_NAME)), None)
    if value is None and first is not None:
        value = address_for_others(first, all_facts) if several_hosts(all_facts) else "127.0.0.1"
    labels = tuple(one.label for one in lacking)
    yield observe("master-addr-unset", labels, value=value)


def _value(place: Place, told: Sequence[HostFacts], all_facts: Sequence[HostFacts]) -> Iterable[CheckFact | Unchecked]:
    value = place.address
    labels = tuple(one.label for one in told)
    unresolved = [one for one in told if _is_unknown(one.lookup(value))]
    if unresolved:
        where = tuple(one.label for one in unresolved)
        error = str((unresolved[0].lookup(value) or {}).get("error") or "no address")
        known = next((address for one in told for address in (one.lookup(value) or {}).get("addresses", ())), None)
        owner = _host_of_rank_zero(all_facts)
        address = known or (address_for_others(owner, all_facts) if owner is not None else "")
        yield observe(
            "master-addr-unresolvable",
            where,
            variable=place.variable,
            value=place.written(value),
            error=error,
            is_url="://" in value,
            has_port=re.fullmatch(r"[\w.-]+:\d+", value) is not None,
            address=_to_write(place, address),
        )
        return
    if not several_hosts(all_facts):
        if len(all_facts) == 1 and not all(all_facts[0].owns(address) for address in _addresses(all_facts[0], value)):
            yield Unchecked(
                f"whether {place.variable}={value} is rank 0's host",
                "the other hosts: --hosts, or run it under your launcher",
            )
        return
    loopback = [one for one in told if _all_loopback(_addresses(one, value))]
    if len({one.network for one in loopback}) > 1 or (loopback and _is_loopback_name(value)):
        yield _loopback(place, labels, all_facts)
        return
    yield from _no_way(told, place)
    if not place.is_drivers:
        yield from _owner(place, told, all_facts)


def _is_unknown(found: Mapping[str, Any] | None) -> bool:
    """A name server that does not answer in time is another fault than a name that does not exist."""
    return found is not None and not found["addresses"] and found.get("error") != NO_ANSWER


def _to_write(place: Place, address: str) -> str:
    """What to give the variable; nothing where it is not known, and the rule's own words stand."""
    return place.written(address) if address else ""


def _loopback(place: Place, labels: tuple[str, ...], all_facts: Sequence[HostFacts]) -> CheckFact:
    owner = _host_of_rank_zero(all_facts)
    address = address_for_others(owner, all_facts) if owner is not None else ""
    hosts = one_per_network(all_facts)
    return observe(
        "master-addr-loopback",
        labels,
        variable=place.variable,
        value=place.written(place.address),
        count=len(hosts),
        all_hosts=name_all(one.host for one in hosts),
        address=_to_write(place, address),
    )


def _owner(place: Place, told: Sequence[HostFacts], all_facts: Sequence[HostFacts]) -> Iterable[CheckFact | Unchecked]:
    """Whose address it is, as each host sees it."""
    value = place.address
    zero = _host_of_rank_zero(all_facts)
    hosts = one_per_network(all_facts)
    # Loopback in rank 0's own view of its name is no fault here: the store listens on all of its addresses.
    seen = {one.label: [a for a in _addresses(one, value) if not _all_loopback([a])] for one in one_per_network(told)}
    everything = list(dict.fromkeys(address for addresses in seen.values() for address in addresses))
    owned = {address: next((one for one in hosts if one.owns(address)), None) for address in everything}
    if everything and not any(owned.values()):
        has = "; ".join(f"{one.host} has {', '.join(one.addresses()[:3]) or 'none'}" for one in hosts[:4])
        yield observe(
            "master-addr-nobody",
            tuple(one.label for one in told),
            variable=place.variable,
            value=place.written(value),
            seen=", ".join(everything[:3]),
            count=len(hosts),
            has=has,
            address=_to_write(place, address_for_others(zero, all_facts) if zero is not None else ""),
            unless=STORE_REACHED,  # by way of a load balancer, a service of Kubernetes, a forwarded port
        )
        return
    yield from _partly_wrong(place, seen, owned, zero)
    wrong = next(
        (one for one in owned.values() if one is not None and zero is not None and one.network != zero.network), None
    )
    if (
        wrong is not None
        and zero is not None
        and not any(one is not None and one.network == zero.network for one in owned.values())
    ):
        yield observe(
            "master-addr-wrong-host",
            tuple(one.label for one in told),
            variable=place.variable,
            value=place.written(value),
            owner=wrong.host,
            zero=zero.host,
            address=_to_write(place, address_for_others(zero, all_facts)),
        )


def _partly_wrong(
    place: Place, seen: dict[str, list[str]], owned: dict[str, HostFacts | None], zero: HostFacts | None
) -> Iterable[CheckFact]:
    """A name that is right on some hosts only, or that has a dead address beside a live one."""
    given: dict[str, Any] = {"variable": place.variable, "value": place.written(place.address)}
    owners = {address: owner for address, owner in owned.items() if owner is not None}
    right = [address for address, owner in owners.items() if zero is not None and owner.network == zero.network]
    groups: dict[tuple[str, ...], list[str]] = {}
    for label, addresses in seen.items():
        groups.setdefault(tuple(addresses), []).append(label)
    for told, labels in groups.items():
        live = [address for address in told if owned[address]]
        dead = [address for address in told if not owned[address]]
        if dead and not live:
            right_one = next(iter(owners))
            yield observe(
                "master-addr-stale",
                tuple(labels),
                **given,
                seen=", ".join(dead),
                nobody=True,
                right=right_one,
                address=_to_write(place, right_one),
            )
        elif right and live and not set(live) & set(right):
            yield observe(
                "master-addr-stale",
                tuple(labels),
                **given,
                seen=live[0],
                owner=owners[live[0]].host,
                right=right[0],
                address=_to_write(place, right[0]),
            )
        elif dead:
            yield observe(
                "dead-address-beside-live",
                tuple(labels),
                **given,
                right=live[0],
                dead=", ".join(dead),
                address=_to_write(place, live[0]),
            )


def _no_way(told: Sequence[HostFacts], place: Place) -> Iterable[CheckFact]:
    """Hosts that know no way to any of its addresses."""
    lost: dict[str, list[HostFacts]] = {}
    for one in told:
        ways = (one.lookup(place.address) or {}).get("from", {})
        if ways and not any(ways.values()):
            lost.setdefault(", ".join(ways), []).append(one)
    for addresses, ones in lost.items():
        labels = tuple(one.label for one in ones)
        yield observe(
            "master-addr-unroutable",
            labels,
            address=addresses,
            variable=place.variable,
            value=place.written(place.address),
            own=", ".join(ones[0].addresses()) or "no address",
        )


def _host_of_rank_zero(all_facts: Sequence[HostFacts]) -> HostFacts | None:
    """By its rank; where only nodes are numbered, node 0, unless the nodes agree on a place by themselves."""
    found = next((one for one in all_facts if 0 in one.ranks), None)
    if found is None and not any(one.ranks or one.variable("PET_RDZV_BACKEND") for one in all_facts):
        names = ("PET_NODE_RANK", "NODE_RANK")
        found = next((one for one in all_facts if any(one.variable(name) == "0" for name in names)), None)
    return found


def _addresses(host_facts: HostFacts, name: str) -> list[str]:
    found = host_facts.lookup(name)
    return [str(address) for address in found["addresses"]] if found else []


def _all_loopback(addresses: Sequence[str]) -> bool:
    found = [ipaddress.ip_address(address.partition("%")[0]) for address in addresses]
    return bool(found) and all(address.is_loopback or address.is_unspecified for address in found)


def _is_loopback_name(value: str) -> bool:
    return value in ("localhost", "::1", "0.0.0.0", "::") or value.startswith(("localhost.", "127."))
