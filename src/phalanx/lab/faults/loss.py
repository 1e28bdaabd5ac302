"""Some of the packets to and from one host are lost."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import plain_frames

EXPECTED = Expected(cause="packet-loss", symptom="perf.low-efficiency", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", percent: int = 5) -> None:
    """A bad cable or an overloaded port."""
    for other in bed:
        plain_frames(other)
    port = bed[host].port
    bed.switch_filter(
        f'oifname "{port}" numgen random mod 100 < {percent} drop',
        f'iifname "{port}" numgen random mod 100 < {percent} drop',
    )
