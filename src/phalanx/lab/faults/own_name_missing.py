"""A host's own name does not resolve."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import change_name

EXPECTED = Expected(cause="own-name-missing", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """Nobody knows it by name, not even itself."""
    for other in bed:
        change_name(other, "", host)
