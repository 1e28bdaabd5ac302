"""Two hosts have the same rank."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="rank-duplicate", hosts=("h1", "h2"), at_least=3)


def apply(bed: Bed, host: str = "h2", rank: str = "1") -> None:
    """The second one is turned away, or both break the first collective."""
    bed[host].variables["RANK"] = rank
