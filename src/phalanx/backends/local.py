"""This machine: the agent is a child of the driver. `nodes=2` starts two agents, as if there were two machines."""

from __future__ import annotations

from collections.abc import Mapping

from phalanx.backends.backend import Command, Plan, Reach, Request, Started, fewer_nodes, spread
from phalanx.backends.processes import ProcessJob

NAME = "local"
REACH = Reach.STREAMS
OPTIONS: Mapping[str, str] = {"nodes": "how many agents share the workers; 1 unless you want to try out several"}


def plan(request: Request) -> Plan:
    """One agent for each node that was asked for."""
    nodes = request.count("nodes", 1)
    layout = spread(request.workers, nodes)
    commands = tuple(
        Command(
            request.agent, f"the agent of node {node}: {count} worker{'s' if count > 1 else ''}", request.environment
        )
        for node, count in enumerate(layout)
    )
    return Plan(
        layout, commands, nodes=("localhost",) if nodes == 1 else tuple(f"local{node}" for node in range(nodes))
    )


def without(options: Mapping[str, object], nodes: tuple[str, ...]) -> Mapping[str, object]:
    """So many agents fewer."""
    return fewer_nodes(options, len(nodes))


def start(plan: Plan, request: Request) -> Started:
    """As children of this process."""
    return ProcessJob(plan, request.folder)
