"""Nothing is broken; the hosts have routing rules that lead where the others are."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected()


def apply(bed: Bed) -> None:
    """By the source address, as clouds set them up for several interfaces."""
    for host in bed:
        host.ip(f"rule add from {host.address} table 50 priority 20", "route add 10.77.0.0/24 dev eth0 table 50")
