"""Each host lets in the hosts of the job, and nobody else."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(held_back=True)


def apply(bed: Bed) -> None:
    """A firewall as it should be."""
    for host in bed:
        host.filter(
            'iifname "lo" accept',
            "ct state established,related accept",
            "ip saddr 10.77.0.0/24 accept",
            "ip6 saddr fd77::/64 accept",
            "meta l4proto { tcp, udp } drop",
        )
