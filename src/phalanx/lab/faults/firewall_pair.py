"""Something between two hosts drops what they send to each other; both reach all others."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="pair-blocked", symptom="comm.hang-timeout", hosts=("h1", "h2"), at_least=3)


def apply(bed: Bed, one: str = "h1", other: str = "h2") -> None:
    """A single cell of the matrix, which a ring of neighbours may miss."""
    bed.switch_filter(
        f'iifname "{bed[one].port}" oifname "{bed[other].port}" meta protocol ip drop',
        f'iifname "{bed[other].port}" oifname "{bed[one].port}" meta protocol ip drop',
    )
