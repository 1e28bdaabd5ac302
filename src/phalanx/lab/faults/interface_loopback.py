"""A variable names the loopback interface, on several hosts."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="interface-loopback", symptom="comm.hang-timeout", hosts=("h0", "h1", "h2"))


def apply(bed: Bed, variable: str = "GLOO_SOCKET_IFNAME") -> None:
    """What works on one machine was taken along to several."""
    bed.set_variables({variable: "lo"})
