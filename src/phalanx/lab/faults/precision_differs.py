"""One rank computes with 64 bits, the others with 32."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="setting-differs-numbers", symptom="perf.non-convergence", hosts=("h1",), at_least=3)


def apply(bed: Bed) -> None:
    """Left in the profile of one host."""
    bed.set_variables({"JAX_ENABLE_X64": "1"}, on=["h1"])
