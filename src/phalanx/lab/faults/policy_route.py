"""A rule of one host sends what it answers over a table without a way."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(
    cause="one-way-block",
    symptom="comm.hang-timeout",
    hosts=("h1",),
    at_least=3,
    held_back=True,
    also=("no-route", "host-unreachable", "policy-route"),
)


def apply(bed: Bed, host: str = "h1") -> None:
    """Left over from a second uplink."""
    address = bed[host].address
    bed[host].ip(f"rule add from {address} table 77 priority 10", "route add blackhole default table 77")
