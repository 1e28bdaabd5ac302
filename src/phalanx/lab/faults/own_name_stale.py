"""A host's own name resolves to an address that it no longer has."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import change_name

EXPECTED = Expected(cause="own-name-stale", symptom="comm.hang-timeout", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """What is left in DNS after a move."""
    for other in bed:
        change_name(other, f"10.77.0.222 {host}", host)
