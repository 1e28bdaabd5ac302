"""The path to one host carries less than the hosts' MTU, and ssh hangs in its handshake."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import plain_frames
from phalanx.lab.ssh import start_ssh

EXPECTED = Expected(cause="mtu-black-hole", symptom="comm.hang-timeout", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", mtu: int = 1000) -> None:
    """Small messages pass, the lists of algorithms do not."""
    start_ssh(bed)
    for other in bed:
        plain_frames(other)
    port = bed[host].port
    bed.switch_filter(f'oifname "{port}" meta length > {mtu} drop', f'iifname "{port}" meta length > {mtu} drop')
