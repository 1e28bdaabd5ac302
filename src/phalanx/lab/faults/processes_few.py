"""One host allows the job's user few processes."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="process-limit", symptom="fail.out-of-memory", hosts=("h1",), held_back=True)


def apply(bed: Bed, host: str = "h1", processes: int = 128, user: int = 65534) -> None:
    """Data loaders and their threads count too; root is not bound by it."""
    for one in bed:
        one.user = user
    bed[host].limits.append(f"--nproc={processes}:{processes}")
