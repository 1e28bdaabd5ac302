"""The name of rank 0's host has an IPv6 address that leads nowhere beside its good IPv4 address."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import change_name

EXPECTED = Expected(
    cause="dead-address-beside-live", symptom="comm.hang-timeout", also=("first-address-dead",), hosts=("h0",)
)


def apply(bed: Bed, host: str = "h0") -> None:
    """Libraries try the first address, and wait."""
    bed.set_variables({"MASTER_ADDR": host})
    for other in bed:
        change_name(other, f"fd77::dead {host}\n{bed[host].address} {host}", host)
