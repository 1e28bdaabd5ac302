"""A job that goes on with fewer workers after a node was lost: `workers=(2, 4)`."""

from __future__ import annotations

from dataclasses import replace

from phalanx.backends import without_nodes
from phalanx.remote.agent_pool import AgentPool
from phalanx.remote.job import Job


def without_lost(job: Job, pool: AgentPool, first: tuple[int, ...]) -> tuple[Job, list[str]] | None:
    """The job for the nodes that are left, and the names of those that are not. None where all are there, where the user
    wants all workers, or where too few would be left. `first` are the ranks of the node that was lost first."""
    lost = [node for node, line in pool.by_node.items() if not line.is_open]
    if getattr(job.backend, "ENDS_ALL", False):  # the engine took the others away: they may be well
        lost = [node for node in lost if set(pool.by_node[node].ranks) & set(first)]
    left = sum(count for node, count in enumerate(pool.layout) if node not in lost)
    if not lost or job.spec.fewest is None or left < job.spec.fewest:
        return None
    names = [pool.by_node[node].host for node in lost]
    return replace(
        job, spec=replace(job.spec, size=left), options=without_nodes(job.backend, job.options, names)
    ), names
