"""The hosts have IPv6 only, and one of them drops the high ports."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import use_ipv6_only

EXPECTED = Expected(
    cause="firewall-ephemeral-ports", symptom="comm.hang-timeout", hosts=("h1",), at_least=3, held_back=True
)


def apply(bed: Bed) -> None:
    """MASTER_ADDR is a name."""
    use_ipv6_only(bed)
    bed["h1"].filter('iifname "lo" accept', "ct state established,related accept", "tcp dport 32768-65535 drop")
