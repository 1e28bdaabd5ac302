"""One rank chooses another algorithm of NCCL than the others."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="setting-differs-hang", symptom="comm.hang-timeout", hosts=("h1",), at_least=3)


def apply(bed: Bed, host: str = "h1") -> None:
    """Ranks then wait for messages that nobody sends."""
    bed.set_variables({"NCCL_ALGO": "Ring"})
    bed.set_variables({"NCCL_ALGO": "Tree"}, on=[host])
