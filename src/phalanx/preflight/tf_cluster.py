"""TF_CONFIG as TensorFlow reads it: the cluster, and this task's place in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from phalanx.preflight.agent.names import host_of

_TYPES = ("chief", "worker", "ps", "evaluator", "master")


@dataclass(frozen=True, slots=True)
class Task:
    """One place of a cluster."""

    kind: str
    index: int
    endpoint: str  # host:port; empty for an evaluator, which nobody calls

    @property
    def place(self) -> str:
        """`worker 1`."""
        return f"{self.kind} {self.index}"

    @property
    def host(self) -> str:
        """Name or address."""
        return host_of(self.endpoint)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.endpoint.rpartition(":")[2] or 0)


@dataclass(frozen=True, slots=True)
class Cluster:
    """All places, and which of them is this task's."""

    tasks: tuple[Task, ...]
    own: Task

    def __str__(self) -> str:
        kinds = sorted({task.kind for task in self.tasks})
        return "; ".join(f"{kind}: {', '.join(t.endpoint for t in self.tasks if t.kind == kind)}" for kind in kinds)


def read_cluster(value: str) -> Cluster | str:
    """The cluster, or what is wrong with the text."""
    try:
        config = json.loads(value)
    except ValueError as error:
        return f"it is not JSON ({error}){'; JSON wants double quotation marks' if _single_quoted(value) else ''}"
    if not isinstance(config, dict):
        return "it is not an object with `cluster` and `task`"
    cluster, task = config.get("cluster"), config.get("task")
    if not isinstance(cluster, dict) or not cluster:
        return "it has no `cluster`"
    if not isinstance(task, dict) or "type" not in task or "index" not in task:
        return "its `task` lacks `type` or `index`"
    if unknown := [kind for kind in cluster if kind not in _TYPES]:
        return f"its cluster has the unknown task type {unknown[0]!r}; TensorFlow knows {', '.join(_TYPES[:4])}"
    for kind, members in cluster.items():
        listed = _listed(members)
        if listed is None:
            return f"its {kind} is not a list of addresses"
        if wrong := next((problem for member in listed if (problem := _wrong_endpoint(member))), None):
            return wrong
    kind, index = str(task["type"]), str(task["index"])
    if not index.isdigit():
        return f"the task's index {task['index']!r} is not a number"
    tasks = tuple(_tasks(cluster))
    if kind == "evaluator":
        return Cluster(tasks, Task(kind, int(index), ""))
    if kind not in cluster:
        return f"its task is a {kind}, but the cluster has only {', '.join(cluster)}"
    own = next((one for one in tasks if one.kind == kind and one.index == int(index)), None)
    if own is None:
        count = sum(one.kind == kind for one in tasks)
        return f"its task is {kind} {index}, but the cluster has {count} of them (0 to {count - 1})"
    return Cluster(tasks, own)


def _tasks(cluster: dict[str, Any]) -> Iterator[Task]:
    """Members are a list, or an object from index to address where some are left out."""
    for kind, members in cluster.items():
        pairs = members.items() if isinstance(members, dict) else enumerate(members)
        for index, member in pairs:
            if str(index).isdigit():
                yield Task(kind, int(index), member)


def _listed(members: object) -> list[str] | None:
    listed = list(members.values()) if isinstance(members, dict) else members
    if not isinstance(listed, list) or not all(isinstance(member, str) for member in listed):
        return None
    return listed


def _wrong_endpoint(member: str) -> str:
    host, port = host_of(member), member.rpartition(":")[2]
    if "://" in member:
        return f"{member!r} is a URL, where host:port is wanted"
    if not host or not port.isdigit():
        return f"{member!r} is not host:port"
    if not 0 < int(port) < 65536:
        return f"{member!r} has no port between 1 and 65535"
    if host != host.strip() or "/" in host or " " in host:
        return f"{member!r} is not host:port"
    return ""


def _single_quoted(value: str) -> bool:
    return value.lstrip().startswith("{'")
