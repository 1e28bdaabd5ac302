"""A rank of the world was not started."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="rank-missing", symptom="comm.hang-timeout", hosts=())


def apply(bed: Bed) -> None:
    """The world is one larger than its ranks."""
    bed.set_variables({"WORLD_SIZE": str(len(bed.hosts) + 1)})
