"""A firewall on one host rejects what comes in by an ICMP message, as firewalld does."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="firewall-rejects", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """Connections that the host itself makes go through."""
    bed[host].filter(
        'iifname "lo" accept',
        "ct state established,related accept",
        "meta l4proto tcp reject with icmpx admin-prohibited",
    )
