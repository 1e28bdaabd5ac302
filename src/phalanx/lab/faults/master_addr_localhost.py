"""MASTER_ADDR is localhost, on several hosts."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="master-addr-loopback", symptom="comm.hang-timeout", hosts=("h0", "h1", "h2"))


def apply(bed: Bed, address: str = "localhost") -> None:
    """What works on one machine was taken along to several."""
    bed.set_variables({"MASTER_ADDR": address})
