"""A rule of one host sends what it answers out of an interface that leads nowhere."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="policy-route", symptom="comm.hang-timeout", hosts=("h2",), at_least=3)


def apply(bed: Bed) -> None:
    """Left over from a second uplink."""
    host = bed["h2"]
    host.ip(
        "link add uplink type bridge",
        "link set uplink up",
        "addr add 10.99.0.2/24 dev uplink",
        f"rule add from {host.address} table 99 priority 10",
        "route add default via 10.99.0.1 dev uplink table 99",
    )
