"""A rank is not below the size of the world."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="rank-out-of-range", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """Counted from one instead of from zero."""
    bed[host].variables["RANK"] = str(len(bed.hosts))
