"""A firewall on one host answers what comes in with a reset, as if nothing listened."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="firewall-resets", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """Connections that the host itself makes go through."""
    bed[host].filter(
        'iifname "lo" accept',
        "ct state established,related accept",
        "meta l4proto tcp tcp flags syn / fin,syn,rst,ack reject with tcp reset",
    )
