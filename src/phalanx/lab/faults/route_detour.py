"""One host reaches another through a third one that forwards nothing."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="route-detour", symptom="comm.hang-timeout", hosts=("h1",), at_least=3)


def apply(bed: Bed) -> None:
    """A static route from the days of another network."""
    bed["h1"].ip("route add 10.77.0.12/32 via 10.77.0.10")
    bed["h0"].write("/proc/sys/net/ipv4/ip_forward", "0\n")
