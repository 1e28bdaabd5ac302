"""MASTER_ADDR is not set on one host."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import UNSET

EXPECTED = Expected(cause="master-addr-unset", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """The variable got lost on the way to one host."""
    bed[host].variables["MASTER_ADDR"] = UNSET
