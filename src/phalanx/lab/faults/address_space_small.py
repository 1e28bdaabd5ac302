"""One host limits the address space of a process."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="address-space-limit", symptom="fail.out-of-memory", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", mebibytes: int = 4096) -> None:
    """ulimit -v, left by a batch system."""
    bed[host].limits.append(f"--as={mebibytes << 20}:{mebibytes << 20}")
