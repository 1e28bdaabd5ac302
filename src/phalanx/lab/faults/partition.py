"""In the middle of a job the network falls into two parts."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="host-lost", symptom="perf.hang", hosts=("h1",), found_by="run")


def apply(bed: Bed, host: str = "h1") -> None:
    """All packets between one host and the others are dropped from now on."""
    port = bed[host].port
    bed.switch_filter(f'iifname "{port}" drop', f'oifname "{port}" drop')
