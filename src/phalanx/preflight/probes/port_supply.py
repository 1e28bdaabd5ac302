"""What the kernel gives out: ports for the near ends of connections, and places in the queue of a listener."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.agreement import several_hosts, world_size
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts, one_per_network
from phalanx.preflight.options import CheckOptions

_PORTS_OF_A_RANK, _PORTS_OF_A_PEER = 64, 8  # listeners, connections of the groups and the store, with room for restarts
_SHORT_QUEUE = 16


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Host by host, for as many ranks as it has."""
    size = world_size(all_facts) or len(all_facts)
    for one in one_per_network(all_facts):
        ports = one.section("ports")
        low, high = ports.get("range") or (32768, 60999)
        count = max(0, high - low + 1)
        left = max(0, count - int(ports.get("taken") or 0))
        here = sum(other.network == one.network for other in all_facts)
        if ports and left < here * (_PORTS_OF_A_RANK + min(_PORTS_OF_A_PEER * size, 512)):
            yield observe("ephemeral-ports-few", (one.label,), left=left, count=count, range=f"{low} {high}")
        queue = ports.get("queue")
        if queue is not None and several_hosts(all_facts) and queue < max(_SHORT_QUEUE, min(size, 128)):
            yield observe("listen-queue-short", (one.label,), queue=queue, size=size)
