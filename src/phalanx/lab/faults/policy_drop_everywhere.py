"""Firewalls of all hosts let in SSH and the port of the store, and drop the rest."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(
    cause="firewall-ephemeral-ports",
    symptom="comm.hang-timeout",
    hosts=("h0", "h1", "h2"),
    at_least=3,
    also=("all-hosts-blocked",),
    held_back=True,
)


def apply(bed: Bed) -> None:
    """The policy of the chain drops."""
    for host in bed:
        host.filter(
            'iifname "lo" accept',
            "ct state established,related accept",
            "meta l4proto { icmp, ipv6-icmp } accept",
            "tcp dport { 22, 29500 } accept",
            "drop",
        )
