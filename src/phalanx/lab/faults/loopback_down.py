"""The loopback interface of one host is down."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="loopback-filtered", symptom="comm.hang-timeout", hosts=("h2",), at_least=3)


def apply(bed: Bed, host: str = "h2") -> None:
    """A minimal image that does not bring it up."""
    bed[host].ip("link set lo down")
