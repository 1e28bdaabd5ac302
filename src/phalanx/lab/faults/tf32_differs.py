"""One rank computes with another precision than the others."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="setting-differs-numbers", symptom="perf.non-convergence", hosts=("h2",), at_least=3)


def apply(bed: Bed, host: str = "h2") -> None:
    """Left over from a comparison."""
    bed.set_variables({"NVIDIA_TF32_OVERRIDE": "1"})
    bed.set_variables({"NVIDIA_TF32_OVERRIDE": "0"}, on=[host])
