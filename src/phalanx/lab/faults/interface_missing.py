"""A variable names an interface that no host has."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="interface-missing", hosts=("h0", "h1", "h2"))


def apply(bed: Bed, name: str = "ib0", variable: str = "GLOO_SOCKET_IFNAME") -> None:
    """A setting that was copied from another cluster."""
    bed.set_variables({variable: name})
