"""One host is in another network, and has no route to the others."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="no-route", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """A wrong prefix length has the same effect."""
    here = bed[host]
    here.ip(f"addr del {here.address}/24 dev eth0", f"addr add {here.address}/32 dev eth0")
