"""One host believes in another size of the world."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="world-size-differs", hosts=("h1",), at_least=3)


def apply(bed: Bed, host: str = "h1") -> None:
    """It waits for others, or leaves too early."""
    bed[host].variables["WORLD_SIZE"] = str(len(bed.hosts) - 1)
