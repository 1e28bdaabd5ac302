"""A firewall on one host filters its loopback interface too."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="loopback-filtered", symptom="comm.hang-timeout", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """A default policy of drop, and nobody thought of lo."""
    bed[host].filter('iifname "lo" tcp dport 1024-65535 drop')
