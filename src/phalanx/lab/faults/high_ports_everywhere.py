"""A firewall on every host lets the store's port in, but not the high ports."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="firewall-ephemeral-ports", symptom="comm.hang-timeout", hosts=("h0", "h1", "h2"))


def apply(bed: Bed) -> None:
    """One security group for all of them."""
    for host in bed:
        host.filter('iifname "lo" accept', "ct state established,related accept", "tcp dport 30000-65535 drop")
