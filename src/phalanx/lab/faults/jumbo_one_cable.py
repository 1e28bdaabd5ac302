"""All hosts send jumbo frames, and the cable of one carries 1500 bytes."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import plain_frames

EXPECTED = Expected(cause="mtu-black-hole", symptom="comm.hang-timeout", hosts=("h1",), at_least=3, held_back=True)


def apply(bed: Bed, host: str = "h1") -> None:
    """One port of the switch was forgotten."""
    for one in bed:
        plain_frames(one)
        one.ip("link set eth0 mtu 9000")
        bed.switch_ip(f"link set {one.port} mtu 9000")
    port = bed[host].port
    bed.switch_filter(f'oifname "{port}" meta length > 1500 drop', f'iifname "{port}" meta length > 1500 drop')
