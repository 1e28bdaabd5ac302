"""A list of Open MPI components holds one that does not exist, on all hosts."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="value-not-known", hosts=("h0", "h1", "h2"))


def apply(bed: Bed) -> None:
    """Open MPI says only that no transport reaches the peers."""
    bed.set_variables({"OMPI_MCA_btl": "self,tpc"})
