"""MASTER_ADDR is a name that does not resolve."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="master-addr-unresolvable", hosts=("h0", "h1", "h2"))


def apply(bed: Bed, name: str = "master.invalid") -> None:
    """All ranks are given a name that nobody knows."""
    bed.set_variables({"MASTER_ADDR": name})
