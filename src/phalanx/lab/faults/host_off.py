"""In the middle of a job a host is switched off."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="host-lost", symptom="perf.hang", hosts=("h1",), found_by="run")


def apply(bed: Bed, host: str = "h1") -> None:
    """It says no good-bye: the cable first, then everything that runs there."""
    here = bed[host]
    bed.switch_ip(f"link set {here.port} nomaster down")
    bed.kill(here)
