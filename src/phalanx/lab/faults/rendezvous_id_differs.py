"""One host was started with another rendezvous id."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="rendezvous-id-differs", symptom="comm.hang-timeout", hosts=("h1",), at_least=3)


def apply(bed: Bed, host: str = "h1") -> None:
    """It waits at another table."""
    bed.set_variables({"PET_NNODES": str(len(bed.hosts)), "PET_RDZV_ID": "train"})
    bed[host].variables["PET_RDZV_ID"] = "trian"
