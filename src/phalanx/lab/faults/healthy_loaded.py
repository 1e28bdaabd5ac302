"""Nothing is broken, but all cores are busy."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import load

EXPECTED = Expected(held_back=True)


def apply(bed: Bed) -> None:
    """Twice as many loops as cores."""
    load(bed)
