"""One host has IPv6 only, the others are told an IPv4 address."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import change_name

EXPECTED = Expected(cause="address-family-mixed", hosts=("h1",), also=("no-route", "master-addr-unroutable"))


def apply(bed: Bed, host: str = "h1") -> None:
    """The family that the job uses is missing there."""
    here = bed[host]
    here.ip(f"addr del {here.address}/24 dev eth0")
    for other in bed:
        change_name(other, f"{here.address6} {host}", host)
