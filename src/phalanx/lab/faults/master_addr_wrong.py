"""MASTER_ADDR is the address of a host that does not run rank 0."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="master-addr-wrong-host", hosts=("h0", "h1"))


def apply(bed: Bed, owner: str = "h1") -> None:
    """All ranks are told to meet at the wrong host."""
    bed.set_variables({"MASTER_ADDR": bed[owner].address})
