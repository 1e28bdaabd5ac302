"""The cable of one host is not plugged in."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="host-unreachable", symptom="comm.hang-timeout", hosts=("h1",), also=("no-neighbour",))


def apply(bed: Bed, host: str = "h1") -> None:
    """Its interface is up, the switch does not see it."""
    bed.switch_ip(f"link set {bed[host].port} nomaster")
