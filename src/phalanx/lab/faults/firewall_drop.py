"""A firewall on one host drops what comes in, without an answer."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="firewall-drops", symptom="comm.hang-timeout", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """Connections that the host itself makes go through."""
    bed[host].filter(
        'iifname "lo" accept', "ct state established,related accept", "tcp flags syn / fin,syn,rst,ack drop"
    )
