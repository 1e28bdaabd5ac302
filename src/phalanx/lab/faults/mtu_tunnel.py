"""The path to one host is a tunnel that carries less than the hosts' MTU, and nobody says so."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import plain_frames

EXPECTED = Expected(cause="mtu-black-hole", symptom="comm.hang-timeout", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", mtu: int = 1400) -> None:
    """The tunnel drops what is too large, and the message about it is filtered."""
    for other in bed:
        plain_frames(other)
    port = bed[host].port
    bed.switch_filter(f'oifname "{port}" meta length > {mtu} drop', f'iifname "{port}" meta length > {mtu} drop')
