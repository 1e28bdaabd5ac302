"""What the kernel gives out: ports for the near ends of connections, and places in the queue of a listener."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.check.agreement import several_hosts, world_size
from phalanx.check.options import CheckOptions
from phalanx.check.reading import Reading
from phalanx.check.witness import Witness, one_per_network
from phalanx.model import Unchecked

_PORTS_OF_A_RANK, _PORTS_OF_A_PEER = 64, 8  # listeners, connections of the groups and the store, with room for restarts
_SHORT_QUEUE = 16


def examine(witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[Reading | Unchecked]:
    """Host by host, for as many ranks as it has."""
    size = world_size(witnesses) or len(witnesses)
    for one in one_per_network(witnesses):
        ports = one.section("ports")
        low, high = ports.get("range") or (32768, 60999)
        count = max(0, high - low + 1)
        left = max(0, count - int(ports.get("taken") or 0))
        here = sum(other.network == one.network for other in witnesses)
        if ports and left < here * (_PORTS_OF_A_RANK + min(_PORTS_OF_A_PEER * size, 512)):
            yield Reading(
                f"check: {one.label} has only {left} of {count} ports left for connections (net.ipv4.ip_local_port_range is {low} {high})",
                accused=(one.label,),
            )
        queue = ports.get("queue")
        if queue is not None and several_hosts(witnesses) and queue < max(_SHORT_QUEUE, min(size, 128)):
            yield Reading(
                f"check: at most {queue} connection{'s' if queue != 1 else ''} may wait to be accepted on {one.label} "
                f"(net.core.somaxconn), and {size} ranks come at once",
                accused=(one.label,),
            )
