"""One host has a small /dev/shm."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="shared-memory-small", symptom="fail.memory-issue", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", megabytes: int = 4) -> None:
    """A container's default is 64 MB; data loaders and NCCL want more."""
    bed[host].run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=1777", "tmpfs", "/dev/shm"])
