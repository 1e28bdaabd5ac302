"""One host allows a process very few open files."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="open-files-limit", symptom="fail.out-of-memory", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", files: int = 64) -> None:
    """Each peer costs sockets."""
    bed[host].limits.append(f"--nofile={files}:{files}")
