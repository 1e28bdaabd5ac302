"""One rank chooses another protocol of NCCL than the others."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="setting-differs-hang", symptom="comm.hang-timeout", hosts=("h2",), at_least=3)


def apply(bed: Bed, host: str = "h2") -> None:
    """It was tried out on one node."""
    bed.set_variables({"NCCL_PROTO": "Simple"})
    bed.set_variables({"NCCL_PROTO": "LL128"}, on=[host])
