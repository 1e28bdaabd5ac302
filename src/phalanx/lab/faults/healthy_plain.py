"""Nothing is broken."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected()


def apply(bed: Bed) -> None:
    """As it comes."""
