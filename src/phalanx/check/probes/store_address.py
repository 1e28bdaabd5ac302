"""MASTER_ADDR: set, alike, resolvable, and the address of the host that rank 0 is on."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from phalanx.check.agreement import several_hosts, split_of_variable
from phalanx.check.options import CheckOptions
from phalanx.check.reading import Reading
from phalanx.check.witness import Witness, name_all, one_per_network
from phalanx.model import Unchecked

_NAME = "MASTER_ADDR"


def examine(witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[Reading | Unchecked]:
    """What is wrong with where the ranks are to meet."""
    yield from _missing(witnesses)
    told = [witness for witness in witnesses if witness.variable(_NAME)]
    split = split_of_variable(told, _NAME)
    if split is not None:
        advice = f"Set it to {split.common} on {name_all(split.odd)}." if split.common else "Set it to one value."
        yield Reading(
            f"check: {_NAME} differs between the ranks: {split.told()}", accused=split.odd, values={"advice": advice}
        )
    values = dict.fromkeys(witness.variable(_NAME) or "" for witness in told)
    for value in values if split is None else [split.common] if split.common else []:  # the odd ones were named
        yield from _value(value, [one for one in told if one.variable(_NAME) == value], witnesses)


def _missing(witnesses: Sequence[Witness]) -> Iterable[Reading]:
    """Ranks of one job that were told of a world but not where it meets."""
    lacking = [
        one
        for one in witnesses
        if one.variable("RANK") is not None
        and (one.variable("WORLD_SIZE") or "").isdigit()
        and int(one.variable("WORLD_SIZE") or 1) > 1
        and not one.variable(_NAME)
    ]
    if not lacking:
        return
    first = next((one for one in witnesses if 0 in one.ranks), None)
    value = next((one.variable(_NAME) for one in witnesses if one.variable(_NAME)), None)
    if value is None and first is not None:
        value = next(iter(first.addresses()), first.host) if several_hosts(witnesses) else "127.0.0.1"
    labels = tuple(one.label for one in lacking)
    yield Reading(
        f"check: {_NAME} is not set on {name_all(labels)}, though WORLD_SIZE says that there are several ranks",
        accused=labels,
        values={"value": value or "the address of rank 0's host", "there": name_all(labels)},
    )


def _value(value: str, told: Sequence[Witness], witnesses: Sequence[Witness]) -> Iterable[Reading | Unchecked]:
    labels = tuple(one.label for one in told)
    unresolved = [one for one in told if not (one.lookup(value) or {"addresses": ["?"]})["addresses"]]
    if unresolved:
        where = tuple(one.label for one in unresolved)
        error = str((unresolved[0].lookup(value) or {}).get("error") or "no address")
        known = next((address for one in told for address in (one.lookup(value) or {}).get("addresses", ())), None)
        owner = _host_of_rank_zero(witnesses)
        address = known or (next(iter(owner.addresses()), "") if owner is not None else "")
        yield Reading(
            f"check: {_NAME}={value} does not resolve on {name_all(where)} ({error})",
            accused=where,
            values={"address": address or "the address of rank 0's host", "there": name_all(where)},
        )
        return
    if not several_hosts(witnesses):
        if len(witnesses) == 1 and not all(witnesses[0].owns(address) for address in _addresses(witnesses[0], value)):
            yield Unchecked(
                f"whether {_NAME}={value} is rank 0's host", "the other hosts: --hosts, or run it under your launcher"
            )
        return
    loopback = [one for one in told if _all_loopback(_addresses(one, value))]
    if len({one.network for one in loopback}) > 1 or (loopback and _is_loopback_name(value)):
        yield _loopback(value, labels, witnesses)
        return
    yield from _owner(value, told, witnesses)


def _loopback(value: str, labels: tuple[str, ...], witnesses: Sequence[Witness]) -> Reading:
    owner = _host_of_rank_zero(witnesses)
    address = next(iter(owner.addresses()), owner.host) if owner is not None else ""
    hosts = one_per_network(witnesses)
    return Reading(
        f"check: {_NAME}={value} means every host itself, but the ranks are on {len(hosts)} hosts ({name_all(one.host for one in hosts)})",
        accused=labels,
        values={"address": address or "the address of rank 0's host"},
    )


def _owner(value: str, told: Sequence[Witness], witnesses: Sequence[Witness]) -> Iterable[Reading | Unchecked]:
    """Whose address it is, as each host sees it."""
    zero = _host_of_rank_zero(witnesses)
    hosts = one_per_network(witnesses)
    # Loopback in rank 0's own view of its name is no fault here: the store listens on all of its addresses.
    seen = {one.label: [a for a in _addresses(one, value) if not _all_loopback([a])] for one in one_per_network(told)}
    everything = list(dict.fromkeys(address for addresses in seen.values() for address in addresses))
    owned = {address: next((one for one in hosts if one.owns(address)), None) for address in everything}
    yield from _no_way(told, value)
    if everything and not any(owned.values()):
        has = "; ".join(f"{one.host} has {', '.join(one.addresses()[:3]) or 'none'}" for one in hosts[:4])
        yield Reading(
            f"check: {_NAME}={value} is {', '.join(everything[:3])}, which none of the {len(hosts)} hosts has ({has})",
            accused=tuple(one.label for one in told),
            values={
                "address": next(iter(zero.addresses()), zero.host)
                if zero is not None
                else "the address of rank 0's host"
            },
        )
        return
    yield from _partly_wrong(value, seen, owned)
    wrong = next(
        (one for one in owned.values() if one is not None and zero is not None and one.network != zero.network), None
    )
    if (
        wrong is not None
        and zero is not None
        and not any(one is not None and one.network == zero.network for one in owned.values())
    ):
        yield Reading(
            f"check: {_NAME}={value} is an address of {wrong.host}, but rank 0, which opens the store, is on {zero.host}",
            accused=tuple(one.label for one in told),
            values={"address": next(iter(zero.addresses()), zero.host), "host": zero.host},
        )


def _partly_wrong(value: str, seen: dict[str, list[str]], owned: dict[str, Witness | None]) -> Iterable[Reading]:
    """A name that is right on some hosts only, or that has a dead address beside a live one."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for label, addresses in seen.items():
        groups.setdefault(tuple(addresses), []).append(label)
    for told, labels in groups.items():
        live = [address for address in told if owned[address]]
        dead = [address for address in told if not owned[address]]
        if dead and not live:
            right = next(address for address, owner in owned.items() if owner)
            yield Reading(
                f"check: {_NAME}={value} is {', '.join(dead)} on {name_all(labels)}, which no host has; elsewhere it is {right}",
                accused=tuple(labels),
            )
        elif dead:
            yield Reading(
                f"check: {_NAME}={value} resolves on {name_all(labels)} to {live[0]} and also to {', '.join(dead)}, which no host has",
                accused=tuple(labels),
            )


def _no_way(told: Sequence[Witness], value: str) -> Iterable[Reading]:
    """Hosts that know no way to any of its addresses."""
    lost: dict[str, list[Witness]] = {}
    for one in told:
        ways = (one.lookup(value) or {}).get("from", {})
        if ways and not any(ways.values()):
            lost.setdefault(", ".join(ways), []).append(one)
    for addresses, ones in lost.items():
        labels = tuple(one.label for one in ones)
        yield Reading(
            f"check: there is no route from {name_all(labels)} to {addresses} ({_NAME}={value})",
            accused=labels,
            values={"own": ", ".join(ones[0].addresses()) or "no address"},
        )


def _host_of_rank_zero(witnesses: Sequence[Witness]) -> Witness | None:
    """By its rank; where only nodes are numbered, node 0, unless the nodes agree on a place by themselves."""
    found = next((one for one in witnesses if 0 in one.ranks), None)
    if found is None and not any(one.ranks or one.variable("PET_RDZV_BACKEND") for one in witnesses):
        names = ("PET_NODE_RANK", "NODE_RANK")
        found = next((one for one in witnesses if any(one.variable(name) == "0" for name in names)), None)
    return found


def _addresses(witness: Witness, name: str) -> list[str]:
    found = witness.lookup(name)
    return [str(address) for address in found["addresses"]] if found else []


def _all_loopback(addresses: Sequence[str]) -> bool:
    return bool(addresses) and all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)


def _is_loopback_name(value: str) -> bool:
    return value == "localhost" or value.startswith("localhost.") or value == "::1" or value.startswith("127.")
