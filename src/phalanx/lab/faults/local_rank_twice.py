"""Both ranks of one host are told the same local rank."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="rank-duplicate", hosts=("h1",), only_inside=True, held_back=True)


def apply(bed: Bed) -> None:
    """They would take the same GPU."""
    bed.put_ranks(2)
    bed["h1"].ranks[1]["LOCAL_RANK"] = "0"
