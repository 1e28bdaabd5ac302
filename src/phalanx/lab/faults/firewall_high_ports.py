"""A firewall on one host lets the store's port in, but not the high ports that libraries choose."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="firewall-ephemeral-ports", symptom="comm.hang-timeout", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", first: int = 30000) -> None:
    """Ranks meet, and then cannot reach each other."""
    bed[host].filter('iifname "lo" accept', "ct state established,related accept", f"tcp dport {first}-65535 drop")
