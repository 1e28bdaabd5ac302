"""TF_CONFIG: JSON, a place that exists, one cluster for all, an address that is this host's, a port that is free."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from phalanx.check.agent.names import host_of
from phalanx.check.agreement import several_hosts, split_of
from phalanx.check.options import CheckOptions
from phalanx.check.reading import Reading
from phalanx.check.witness import Witness, name_all
from phalanx.model import Unchecked

_TYPES = ("chief", "worker", "ps", "evaluator", "master")


def examine(witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[Reading | Unchecked]:
    """Every task by itself, then all against one another."""
    sound: list[tuple[Witness, dict[str, Any]]] = []
    for one in witnesses:
        value = one.variable("TF_CONFIG")
        if not value:
            continue
        config, problem = _parse(value)
        if config is None:
            yield Reading(
                f"check: TF_CONFIG on {one.label} cannot be used: {problem}",
                accused=(one.label,),
                values={"problem": problem},
            )
        else:
            sound.append((one, config))
    yield from _places(sound, witnesses)
    if not sound:
        return
    split = split_of([one for one, _ in sound], lambda one: _cluster_words(dict(sound_of(sound)[one.label])))
    if split is not None:
        yield Reading(f"check: the cluster in TF_CONFIG differs between the tasks: {split.told()}", accused=split.odd)
    lacking = [one for one in witnesses if not one.variable("TF_CONFIG")]
    if lacking and len(sound) > 1:
        where = tuple(one.label for one in lacking)
        yield Reading(f"check: TF_CONFIG is not set on {name_all(where)}, but on {len(sound)} others", accused=where)
    for one, config in sound:
        yield from _own_address(one, config, witnesses)


def sound_of(sound: Sequence[tuple[Witness, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """The configurations by label."""
    return {one.label: config for one, config in sound}


def _parse(value: str) -> tuple[dict[str, Any] | None, str]:
    try:
        config = json.loads(value)
    except ValueError as error:
        return None, f"it is not JSON ({error})"
    if not isinstance(config, dict):
        return None, "it is not an object with `cluster` and `task`"
    cluster, task = config.get("cluster"), config.get("task")
    if not isinstance(cluster, dict) or not cluster:
        return None, "it has no `cluster`"
    if not isinstance(task, dict) or "type" not in task or "index" not in task:
        return None, "its `task` lacks `type` or `index`"
    unknown = [kind for kind in cluster if kind not in _TYPES]
    if unknown:
        return None, f"its cluster has the unknown task type {unknown[0]!r}; TensorFlow knows {', '.join(_TYPES[:4])}"
    for kind, members in cluster.items():
        listed = list(members.values()) if isinstance(members, dict) else members
        if not isinstance(listed, list) or not all(isinstance(member, str) for member in listed):
            return None, f"its {kind} is not a list of addresses"
        for member in listed:
            if not host_of(member) or not member.rpartition(":")[2].isdigit():
                return None, f"{member!r} is not host:port"
    kind, index = str(task["type"]), task["index"]
    if not str(index).isdigit():
        return None, f"the task's index {index!r} is not a number"
    if kind == "evaluator":
        return config, ""
    if kind not in cluster:
        return None, f"its task is a {kind}, but the cluster has only {', '.join(cluster)}"
    if int(index) >= len(cluster[kind]):
        return (
            None,
            f"its task is {kind} {index}, but the cluster has {len(cluster[kind])} of them (0 to {len(cluster[kind]) - 1})",
        )
    return config, ""


def _members(config: dict[str, Any], kind: str) -> list[str]:
    members = config["cluster"].get(kind, [])
    return list(members.values()) if isinstance(members, dict) else list(members)


def _cluster_words(config: dict[str, Any]) -> str:
    return "; ".join(f"{kind}: {', '.join(_members(config, kind))}" for kind in sorted(config["cluster"]))


def _places(sound: Sequence[tuple[Witness, dict[str, Any]]], witnesses: Sequence[Witness]) -> Iterable[Reading]:
    taken: dict[str, list[str]] = {}
    for one, config in sound:
        taken.setdefault(f"{config['task']['type']} {config['task']['index']}", []).append(one.label)
    for place, labels in taken.items():
        if len(labels) > 1:
            yield Reading(
                f"check: {len(labels)} tasks are {place} by their TF_CONFIG: {name_all(labels)}", accused=tuple(labels)
            )
    if len(sound) > 1 and len(sound) == len(witnesses):
        config = sound[0][1]
        wanted = [f"{kind} {index}" for kind in config["cluster"] for index in range(len(_members(config, kind)))]
        absent = [place for place in wanted if place not in taken]
        if absent and all(len(labels) == 1 for labels in taken.values()):
            yield Reading(
                f"check: the cluster in TF_CONFIG has {name_all(absent)}, but nobody here is that",
                harmed=tuple(one.label for one, _ in sound),
            )
        endpoints = [member for kind in config["cluster"] for member in _members(config, kind)]
        twice = next((member for member in endpoints if endpoints.count(member) > 1), None)
        if twice is not None:
            yield Reading(
                f"check: {twice} stands twice in the cluster of TF_CONFIG", harmed=tuple(one.label for one, _ in sound)
            )


def _own_address(one: Witness, config: dict[str, Any], witnesses: Sequence[Witness]) -> Iterable[Reading]:
    kind, index = str(config["task"]["type"]), int(config["task"]["index"])
    if kind == "evaluator":
        return
    endpoint = _members(config, kind)[index]
    host, _, port = endpoint.rpartition(":")
    found = one.lookup(host_of(endpoint))
    addresses = list(found["addresses"]) if found else []
    values = {"endpoint": endpoint, "own": ", ".join(one.addresses()[:3]), "task": f"{kind} {index}"}
    if found is not None and not addresses:
        yield Reading(
            f"check: {endpoint} ({kind} {index} in TF_CONFIG) does not resolve on {one.label} itself",
            accused=(one.label,),
            values=values,
        )
    elif addresses and one.interfaces and not any(one.owns(address) for address in addresses):
        yield Reading(
            f"check: TF_CONFIG makes {one.label} {kind} {index} at {endpoint}, but that is not its address; it has {', '.join(one.addresses()[:3])}",
            accused=(one.label,),
            values=values,
        )
    elif several_hosts(witnesses) and host_of(host or endpoint) in ("localhost", "127.0.0.1"):
        yield Reading(
            f"check: TF_CONFIG gives {kind} {index} on {one.label} as {endpoint}, which every other host takes for itself",
            accused=(one.label,),
            values=values,
        )
    holder = next((row for row in one.section("ports").get("listening", ()) if row["port"] == int(port)), None)
    if holder is not None:
        who = (
            f"process {holder['pid']} ({holder['command']})"
            if holder.get("pid")
            else f"a process of user {holder['user']}"
        )
        yield Reading(
            f"check: port {port} of {kind} {index} in TF_CONFIG is already in use on {one.label}: {who}",
            accused=(one.label,),
            values={**values, "pid": str(holder.get("pid") or "")},
        )
