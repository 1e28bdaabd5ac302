"""Firewalls of two of four hosts reject the high ports with a message."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="firewall-ephemeral-ports", symptom="comm.hang-timeout", hosts=("h1", "h3"), at_least=4)


def apply(bed: Bed) -> None:
    """The store's port is open."""
    for name in ("h1", "h3"):
        rule = "tcp dport 32768-60999 reject with icmpx type admin-prohibited"
        bed[name].filter('iifname "lo" accept', "ct state established,related accept", rule)
