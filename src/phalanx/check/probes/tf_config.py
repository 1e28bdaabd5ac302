"""TF_CONFIG: a place that exists, taken once, one cluster for all, an address that is this host's and known to the others, a port that is free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.check.agreement import several_hosts, split_of
from phalanx.check.options import CheckOptions
from phalanx.check.reading import Reading
from phalanx.check.tf_cluster import Cluster, Task, read_cluster
from phalanx.check.witness import Witness, name_all
from phalanx.model import Unchecked

Told = Sequence[tuple[Witness, Cluster]]


def examine(witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[Reading | Unchecked]:
    """Every task by itself, then all against one another."""
    sound: list[tuple[Witness, Cluster]] = []
    for one in witnesses:
        if not (value := one.variable("TF_CONFIG")):
            continue
        found = read_cluster(value)
        if isinstance(found, Cluster):
            sound.append((one, found))
        else:
            text = f"check: TF_CONFIG on {one.label} cannot be used: {found}"
            yield Reading(text, accused=(one.label,), values={"problem": found})
    yield from _places(sound, witnesses)
    if not sound:
        return
    clusters = {one.label: str(cluster) for one, cluster in sound}
    split = split_of([one for one, _ in sound], lambda one: clusters[one.label])
    if split is not None:
        yield Reading(f"check: the cluster in TF_CONFIG differs between the tasks: {split.told()}", accused=split.odd)
    lacking = tuple(one.label for one in witnesses if not one.variable("TF_CONFIG"))
    if lacking and len(sound) > 1:
        text = f"check: TF_CONFIG is not set on {name_all(lacking)}, but on {len(sound)} others"
        yield Reading(text, accused=lacking)
    for one, cluster in sound:
        yield from _own_address(one, cluster.own, witnesses)
        if split is None:
            yield from _others(one, cluster, sound)


def _places(sound: Told, witnesses: Sequence[Witness]) -> Iterable[Reading]:
    taken: dict[str, list[str]] = {}
    for one, cluster in sound:
        taken.setdefault(cluster.own.place, []).append(one.label)
    for place, labels in taken.items():
        if len(labels) > 1:
            text = f"check: {len(labels)} tasks are {place} by their TF_CONFIG: {name_all(labels)}"
            yield Reading(text, accused=tuple(labels))
    if len(sound) < 2 or len(sound) < len(witnesses):
        return
    harmed = tuple(one.label for one, _ in sound)
    tasks = sound[0][1].tasks
    absent = [task.place for task in tasks if task.place not in taken]
    if absent and all(len(labels) == 1 for labels in taken.values()):
        text = f"check: the cluster in TF_CONFIG has {name_all(absent)}, but nobody here is that"
        yield Reading(text, harmed=harmed)
    endpoints = [task.endpoint for task in tasks]
    twice = next((endpoint for endpoint in endpoints if endpoints.count(endpoint) > 1), None)
    if twice is not None:
        yield Reading(f"check: {twice} stands twice in the cluster of TF_CONFIG", harmed=harmed)


def _own_address(one: Witness, own: Task, witnesses: Sequence[Witness]) -> Iterable[Reading]:
    if not own.endpoint:
        return
    found = one.lookup(own.host)
    addresses = list(found["addresses"]) if found else []
    values = {"endpoint": own.endpoint, "own": ", ".join(one.addresses()[:3]), "task": own.place}
    accused = (one.label,)
    if found is not None and not addresses:
        yield _unresolved(one, own, values)
    elif addresses and one.interfaces and not any(one.owns(address) for address in addresses):
        text = f"check: TF_CONFIG makes {one.label} {own.place} at {own.endpoint}, but that is not its address; it has {values['own']}"
        yield Reading(text, accused, values=values)
    elif several_hosts(witnesses) and own.host in ("localhost", "127.0.0.1", "::1"):
        text = f"check: TF_CONFIG gives {own.place} on {one.label} as {own.endpoint}, which every other host takes for itself"
        yield Reading(text, accused, values=values)
    row = next((row for row in one.section("ports").get("listening", ()) if row["port"] == own.port), None)
    if row is not None:
        who = f"process {row['pid']} ({row['command']})" if row.get("pid") else f"a process of user {row['user']}"
        text = f"check: port {own.port} of {own.place} in TF_CONFIG is already in use on {one.label}: {who}"
        yield Reading(text, accused, values={**values, "pid": str(row.get("pid") or "")})


def _unresolved(one: Witness, task: Task, values: dict[str, str]) -> Reading:
    text = f"check: {task.endpoint} ({task.place} in TF_CONFIG) does not resolve on {one.label}"
    return Reading(text, accused=(one.label,), values=values)


def _others(one: Witness, cluster: Cluster, sound: Told) -> Iterable[Reading]:
    """What this host takes the other tasks' names for."""
    owners = {found.own.place: witness for witness, found in sound}
    for task in cluster.tasks:
        found = one.lookup(task.host)
        owner = owners.get(task.place)
        if task == cluster.own or found is None or owner is None or owner.network == one.network:
            continue
        addresses = list(found["addresses"])
        values = {"endpoint": task.endpoint, "own": ", ".join(owner.addresses()[:3]), "task": task.place}
        stranger = next((third for third, _ in sound if any(third.owns(a) for a in addresses)), None)
        if not addresses:
            yield _unresolved(one, task, values)
        elif stranger is not None and stranger is not one and not any(owner.owns(a) for a in addresses):
            text = (
                f"check: {one.label} takes {task.host} for {', '.join(addresses)}, which is {stranger.host}; "
                f"{owner.label} has {', '.join(owner.addresses()[:3])}"
            )
            values = {"name": task.host, "address": next(iter(owner.addresses()), ""), "there": one.label}
            yield Reading(text, accused=(one.label,), values=values)
