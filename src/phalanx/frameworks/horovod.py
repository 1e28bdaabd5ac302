"""Horovod, on whichever framework it runs: ranks meet at a store over HTTP, and talk by Gloo."""

import re

from phalanx.frameworks.launching import Meeting, Seat

NAME = "horovod"
SIGNS = re.compile(r"\bhorovod(?:run)?\b|\bhvd\.|\bHOROVOD_", re.I)
OUTRANKS: tuple[str, ...] = ("torch", "tensorflow", "keras")
IMPORTS = ("horovod",)
NEEDS_STORE = True


def ports_needed(size: int) -> int:
    """None: the store has a port of its own, and Gloo lets the kernel choose."""
    return 0


def variables(seat: Seat, meeting: Meeting) -> dict[str, str]:
    """What horovodrun sets for the Gloo controller. The host's name only tells nodes apart: the store counts by it."""
    rank, size, at = str(seat.rank), str(seat.size), seat.at
    return {
        "HOROVOD_HOSTNAME": "localhost" if at.nodes == 1 else f"node{at.node}",
        "HOROVOD_RANK": rank,
        "HOROVOD_SIZE": size,
        "HOROVOD_LOCAL_RANK": str(at.local_rank),
        "HOROVOD_LOCAL_SIZE": str(at.local_size),
        "HOROVOD_CROSS_RANK": str(at.node),
        "HOROVOD_CROSS_SIZE": str(at.nodes),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": meeting.host,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(meeting.store_port),
        "HOROVOD_GLOO_IFACE": meeting.loopback,
        "NCCL_SOCKET_IFNAME": meeting.loopback,
    }
