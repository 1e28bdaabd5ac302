"""One host has another MASTER_PORT than the others."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="master-port-differs", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", port: str = "29501") -> None:
    """One rank knocks at the wrong door."""
    bed[host].variables["MASTER_PORT"] = port
