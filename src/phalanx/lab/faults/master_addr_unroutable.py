"""MASTER_ADDR is an address to which there is no way."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="master-addr-nobody", also=("master-addr-unroutable",), hosts=("h0", "h1", "h2"))


def apply(bed: Bed, address: str = "198.51.100.7") -> None:
    """An address of another network, and no route to it."""
    bed.set_variables({"MASTER_ADDR": address})
