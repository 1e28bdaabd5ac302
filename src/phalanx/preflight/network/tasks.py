"""The ports of TensorFlow's tasks, called by the very names that stand in TF_CONFIG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.network.blocked import Table
from phalanx.preflight.network.nodes import Node, family_of
from phalanx.preflight.network.survey import Survey
from phalanx.preflight.network.talks import Called
from phalanx.preflight.network.words import done_to, icmp_words, named, places, usual_outcome
from phalanx.preflight.tf_cluster import Cluster, Task, read_cluster

_SHUT = ("silent", "refused", "rejected", "no-neighbour", "reset", "no-route")


def find_tasks(nodes: Sequence[Node], all_facts: Mapping[str, HostFacts]) -> dict[int, list[Task]]:
    """By node, the tasks whose ports it will have; targets of one network stack share a node."""
    numbers = {all_facts[node.label].network: node.number for node in nodes}
    found: dict[int, list[Task]] = {}
    for one in all_facts.values():
        cluster = read_cluster(one.variable("TF_CONFIG") or "") if one.variable("TF_CONFIG") else ""
        if isinstance(cluster, Cluster) and cluster.own.endpoint and one.network in numbers:
            found.setdefault(numbers[one.network], []).append(cluster.own)
    return found


def judge_tasks(survey: Survey, table: Table) -> list[CheckFact]:
    """A task's port alone: what is wrong with the whole host is said by the table of pairs."""
    shut: dict[tuple[int, int], list[Called]] = {}
    for one in survey.of("task"):
        pair = table.calls.get((one.source, one.target))
        if one.answered or pair is None or not pair.answered or one.outcome not in _SHUT:
            continue
        if (one.source, one.target) in table.by_luck:
            continue
        if survey.open_port(one.target, family_of(one.ip), one.port) is not None:
            shut.setdefault((one.target, one.port), []).append(one)
    found = []
    for (number, port), calls in sorted(shut.items()):
        task = next(task for task in survey.tasks[number] if task.port == port)
        label = table.labels[number]
        others = sorted({one.source for one in calls})
        how = done_to(usual_outcome(calls))
        found.append(
            observe(
                "task-port-blocked",
                (label,),
                table.label(*others),
                port=port,
                task=task.place,
                how=how,
                others=named(table.labels, others),
                places=places(calls),
                icmp=icmp_words(calls) or None,
                subnet=survey.nodes[number].subnet,
            )
        )
    return found
