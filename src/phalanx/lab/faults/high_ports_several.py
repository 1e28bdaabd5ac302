"""Firewalls on all hosts but rank 0's let the store's port in, but not the high ports."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="firewall-ephemeral-ports", symptom="comm.hang-timeout", hosts=("h1", "h2"), at_least=3)


def apply(bed: Bed) -> None:
    """The image of the workers has a firewall, that of the head has not."""
    for host in list(bed)[1:]:
        host.filter('iifname "lo" accept', "ct state established,related accept", "tcp dport 30000-65535 drop")
