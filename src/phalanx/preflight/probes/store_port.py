"""MASTER_PORT: a usable number, alike everywhere, and free on the host that is to listen there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from phalanx.model import Unchecked
from phalanx.preflight.agreement import split_of_variable
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions

_NAME = "MASTER_PORT"


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """What is wrong with the store's port."""
    told = [host_facts for host_facts in all_facts if host_facts.variable(_NAME) is not None]
    for name in (_NAME, "PET_MASTER_PORT"):
        having = [one for one in all_facts if one.variable(name) is not None]
        if (split := split_of_variable(having, name)) is not None:
            zero = next((one.variable(name) for one in having if 0 in one.ranks), None)
            yield observe("master-port-differs", split.odd, variable=name, zero=zero, **split.fields())
    bad = {one.label: one.variable(_NAME) or "" for one in told if not _is_port(one.variable(_NAME) or "")}
    for value in dict.fromkeys(bad.values()):
        where = tuple(label for label, found in bad.items() if found == value)
        yield observe("master-port-invalid", where, variable=_NAME, value=repr(value))
    for place in dict.fromkeys(one.place for one in all_facts if one.place is not None and one.place.is_endpoint):
        if place.number is None:
            where = tuple(one.label for one in all_facts if one.place == place)
            yield observe(
                "master-port-invalid",
                where,
                variable=place.variable,
                value=place.written(place.address),
                is_endpoint=True,
                right=f"{place.address}:29400",
            )
    lacking = [
        one for one in all_facts if one.variable("MASTER_ADDR") and one.variable("RANK") and one.variable(_NAME) is None
    ]
    if lacking:
        where = tuple(one.label for one in lacking)
        known = next((one.variable(_NAME) for one in told), None)
        yield observe("master-port-unset", where, value=known or "29500")
    yield from _in_use(all_facts)


def _in_use(all_facts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    host_facts = _listener(all_facts)
    place = host_facts.place if host_facts is not None else None
    if host_facts is None or place is None or place.number is None or _store_is_up_already(host_facts):
        return
    port = place.number
    lowest = host_facts.section("ports").get("unprivileged_from", 1024)
    if port < lowest and host_facts.section("who").get("uid") != 0:
        user = str(host_facts.section("who").get("user"))
        yield observe(
            "master-port-privileged", (host_facts.label,), value=port, variable=place.port_variable, user=user
        )
    for row, is_listener in _holders(host_facts, port, all_facts):
        yield observe(
            "master-port-in-use",
            (host_facts.label,),
            port=port,
            variable=place.port_variable,
            pid=row.get("pid") or None,
            command=str(row.get("command") or ""),
            user=None if row.get("pid") else str(row["user"]),
            listens=is_listener,
            connected=not is_listener,
            at=str(row["address"]),
            value=place.written_port(_free_near(host_facts, port)),
        )
        break


def _listener(all_facts: Sequence[HostFacts]) -> HostFacts | None:
    """Where the store is opened: on rank 0; without ranks, on the host whose address is given."""
    if any(one.ranks for one in all_facts):
        return next((one for one in all_facts if 0 in one.ranks), None)
    for one in all_facts:
        found = one.lookup(one.place.address) if one.place is not None and not one.place.is_drivers else None
        own = [a for a in found["addresses"] if one.owns(a)] if found else []
        if own and (len(all_facts) == 1 or not all(a.startswith("127.") for a in own)):
            return one
    return None


def _store_is_up_already(host_facts: HostFacts) -> bool:
    """torchrun's own agent opens the store before the ranks start."""
    return (host_facts.variable("TORCHELASTIC_USE_AGENT_STORE") or "").lower() in ("true", "1")


def _holders(host_facts: HostFacts, port: int, all_facts: Sequence[HostFacts]) -> list[tuple[Mapping[str, Any], bool]]:
    """Who has the port, and whether it listens there. The processes of the check have it to meet, on a host of several ranks too; from outside
    the numbers of other machines' processes say nothing."""
    is_rank = any(one.section("who").get("pid") == os.getpid() for one in all_facts)
    ours = {one.section("who").get("pid") for one in all_facts if is_rank and one.network == host_facts.network}
    ports = host_facts.section("ports")
    found = [(row, True) for row in ports.get("listening", ())]
    found += [(row, False) for row in ports.get("connected", ())]
    return [(row, listens) for row, listens in found if row["port"] == port and row.get("pid") not in ours - {None}]


def _free_near(host_facts: HostFacts, port: int) -> int:
    taken = {row["port"] for row in host_facts.section("ports").get("listening", ())}
    return next(other for other in range(max(port + 1, 1024), 65536) if other not in taken) if port < 65000 else 29500


def _is_port(value: str) -> bool:
    return value.strip().isdigit() and 1 <= int(value) <= 65535 and value == value.strip()
