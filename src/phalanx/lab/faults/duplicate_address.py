"""Two hosts have the same address."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="duplicate-address", symptom="comm.hang-timeout", hosts=("h1", "h2"), at_least=3)


def apply(bed: Bed, host: str = "h2", like: str = "h1") -> None:
    """A cloned image, or an address given twice."""
    here = bed[host]
    here.ip(f"addr del {here.address}/24 dev eth0", f"addr add {bed[like].address}/24 dev eth0")
