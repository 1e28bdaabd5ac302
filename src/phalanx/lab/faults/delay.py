"""Everything to and from one host takes longer."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import delay

EXPECTED = Expected(cause="slow-latency", symptom="perf.low-efficiency", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", milliseconds: int = 20) -> None:
    """It stands in another building, or its path makes a detour."""
    delay(bed, host, milliseconds)
