"""A firewall on one host drops what goes out to high ports; what comes in is answered."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(
    cause="one-way-block", symptom="comm.hang-timeout", hosts=("h1",), also=("firewall-rule-on-store-port",)
)


def apply(bed: Bed, host: str = "h1") -> None:
    """Egress rules, of which nobody thinks."""
    bed[host].filter("tcp dport 1024-65535 tcp flags syn / fin,syn,rst,ack drop", hook="output")
