"""One rank has another number of threads than the others."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(
    cause="setting-differs-slow", symptom="perf.low-efficiency", hosts=("h1",), at_least=3, held_back=True
)


def apply(bed: Bed, host: str = "h1") -> None:
    """All wait for the slowest in every step."""
    bed.set_variables({"OMP_NUM_THREADS": "16"})
    bed.set_variables({"OMP_NUM_THREADS": "1"}, on=[host])
