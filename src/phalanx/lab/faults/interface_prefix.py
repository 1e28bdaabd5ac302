"""NCCL_SOCKET_IFNAME is a prefix that also takes an interface that is down."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="interface-not-usable", hosts=("h0", "h1", "h2"))


def apply(bed: Bed) -> None:
    """eth takes eth1 too."""
    for host in bed:
        host.ip("link add eth1 type bridge", f"addr add 10.88.0.{10 + host.number}/24 dev eth1")
    bed.set_variables({"NCCL_SOCKET_IFNAME": "eth"})
