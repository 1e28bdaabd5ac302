"""TF_CONFIG: a place that exists, taken once, one cluster for all, an address that is this host's and known to the others, a port that is free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.model.ranks import name_all
from phalanx.preflight.agreement import several_hosts, split_of
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.tf_cluster import Cluster, Task, read_cluster

Told = Sequence[tuple[HostFacts, Cluster]]


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Every task by itself, then all against one another."""
    sound: list[tuple[HostFacts, Cluster]] = []
    for one in all_facts:
        if not (value := one.variable("TF_CONFIG")):
            continue
        found = read_cluster(value)
        if isinstance(found, Cluster):
            sound.append((one, found))
        else:
            yield observe("tf-config-unusable", (one.label,), problem=found)
    yield from _places(sound, all_facts)
    if not sound:
        return
    clusters = {one.label: str(cluster) for one, cluster in sound}
    split = split_of([one for one, _ in sound], lambda one: clusters[one.label])
    if split is not None:
        yield observe("tf-clusters-differ", split.odd, told=split.told())
    lacking = tuple(one.label for one in all_facts if not one.variable("TF_CONFIG"))
    if lacking and len(sound) > 1:
        yield observe("tf-config-missing", lacking, count=len(sound))
    for one, cluster in sound:
        yield from _own_address(one, cluster.own, all_facts)
        if split is None:
            yield from _others(one, cluster, sound)


def _places(sound: Told, all_facts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    taken: dict[str, list[str]] = {}
    for one, cluster in sound:
        taken.setdefault(cluster.own.place, []).append(one.label)
    for place, labels in taken.items():
        if len(labels) > 1:
            yield observe("tf-place-taken-twice", tuple(labels), count=len(labels), place=place)
    if len(sound) < 2 or len(sound) < len(all_facts):
        return
    harmed = tuple(one.label for one, _ in sound)
    tasks = sound[0][1].tasks
    absent = [task.place for task in tasks if task.place not in taken]
    if absent and all(len(labels) == 1 for labels in taken.values()):
        yield observe("tf-task-missing", (), harmed, absent=name_all(absent))
    endpoints = [task.endpoint for task in tasks]
    twice = next((endpoint for endpoint in endpoints if endpoints.count(endpoint) > 1), None)
    if twice is not None:
        yield observe("tf-endpoint-twice", (), harmed, endpoint=twice)


def _own_address(one: HostFacts, own: Task, all_facts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    if not own.endpoint:
        return
    found = one.lookup(own.host)
    addresses = list(found["addresses"]) if found else []
    has = ", ".join(one.addresses()[:3])
    accused = (one.label,)
    if found is not None and not addresses:
        yield observe("tf-endpoint-unresolvable", accused, endpoint=own.endpoint, task=own.place, own=has)
    elif addresses and one.interfaces and not any(one.owns(address) for address in addresses):
        yield observe("tf-address-not-own", accused, task=own.place, endpoint=own.endpoint, has=has)
    elif several_hosts(all_facts) and own.host in ("localhost", "127.0.0.1", "::1"):
        yield observe("tf-address-loopback", accused, task=own.place, endpoint=own.endpoint, own=has)
    row = next((row for row in one.section("ports").get("listening", ()) if row["port"] == own.port), None)
    if row is not None:
        pid = row.get("pid") or None
        user = None if pid else str(row["user"])
        command = str(row.get("command") or "")
        yield observe("tf-port-in-use", accused, port=own.port, task=own.place, pid=pid, command=command, user=user)


def _others(one: HostFacts, cluster: Cluster, sound: Told) -> Iterable[CheckFact]:
    """What this host takes the other tasks' names for."""
    places = [found.own.place for _, found in sound]  # of a place that is taken twice nobody is the owner
    owners = {found.own.place: host_facts for host_facts, found in sound if places.count(found.own.place) == 1}
    for task in cluster.tasks:
        found = one.lookup(task.host)
        owner = owners.get(task.place)
        if task == cluster.own or found is None or owner is None or owner.network == one.network:
            continue
        addresses = list(found["addresses"])
        own = ", ".join(owner.addresses()[:3])
        stranger = next((third for third, _ in sound if any(third.owns(a) for a in addresses)), None)
        if not addresses:
            yield observe("tf-endpoint-unresolvable", (one.label,), endpoint=task.endpoint, task=task.place, own=own)
        elif stranger is not None and stranger is not one and not any(owner.owns(a) for a in addresses):
            yield observe(
                "name-of-peer-stale",
                (one.label,),
                name=task.host,
                seen=", ".join(addresses),
                owner=stranger.host,
                peer=owner.label,
                has=own,
                address=next(iter(owner.addresses()), ""),
            )
