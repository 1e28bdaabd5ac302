"""One node goes without direct copies between GPUs."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(
    cause="setting-differs-slow", symptom="perf.low-efficiency", hosts=("h2",), at_least=3, held_back=True
)


def apply(bed: Bed, host: str = "h2") -> None:
    """It was needed there once."""
    bed.set_variables({"NCCL_P2P_DISABLE": "0"})
    bed.set_variables({"NCCL_P2P_DISABLE": "1"}, on=[host])
