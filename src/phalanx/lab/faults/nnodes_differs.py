"""One host was started with another number of nodes."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="nnodes-differs", symptom="comm.hang-timeout", hosts=("h1",), at_least=3)


def apply(bed: Bed, host: str = "h1") -> None:
    """torchrun waits for a node that will not come."""
    bed.set_variables({"PET_NNODES": str(len(bed.hosts)), "PET_RDZV_ID": "train"})
    bed[host].variables["PET_NNODES"] = str(len(bed.hosts) + 1)
