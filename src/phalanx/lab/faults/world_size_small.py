"""The world size is smaller than the number of ranks that are started."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="rank-out-of-range", hosts=("h2",), at_least=3)


def apply(bed: Bed) -> None:
    """A host was added, and the number stayed."""
    bed.set_variables({"WORLD_SIZE": "2"})
