"""In the middle of a job, what one host sends to another no longer arrives."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="network-path-broken", symptom="perf.hang", hosts=("h0", "h1"), found_by="run")


def apply(bed: Bed, source: str = "h1", target: str = "h0") -> None:
    """The other direction still works."""
    bed.switch_filter(f'iifname "{bed[source].port}" oifname "{bed[target].port}" drop')
