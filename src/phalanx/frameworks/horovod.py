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
    """What horovodrun sets for the Gloo controller; all ranks are on one host."""
    rank, size = str(seat.rank), str(seat.size)
    return {
        "HOROVOD_HOSTNAME": "localhost",
        "HOROVOD_RANK": rank,
        "HOROVOD_SIZE": size,
        "HOROVOD_LOCAL_RANK": rank,
        "HOROVOD_LOCAL_SIZE": size,
        "HOROVOD_CROSS_RANK": "0",
        "HOROVOD_CROSS_SIZE": "1",
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": meeting.host,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(meeting.store_port),
        "HOROVOD_GLOO_IFACE": meeting.loopback,
        "NCCL_SOCKET_IFNAME": meeting.loopback,
    }
