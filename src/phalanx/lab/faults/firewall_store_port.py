"""A firewall on rank 0's host lets everything in but the store's port."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(
    cause="firewall-store-port", symptom="comm.hang-timeout", hosts=("h0",), also=("firewall-rule-on-store-port",)
)


def apply(bed: Bed, host: str = "h0", port: int = 29500) -> None:
    """The one port that was forgotten."""
    bed[host].filter(f"tcp dport {port} drop")
