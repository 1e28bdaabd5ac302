"""Nothing is broken; every host has three ranks."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected()


def apply(bed: Bed) -> None:
    """As torchrun would number them."""
    bed.put_ranks(3)
