"""Hosts use jumbo frames, and a switch between them does not carry them."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import plain_frames

EXPECTED = Expected(cause="mtu-black-hole", symptom="comm.hang-timeout", hosts=("h0", "h1", "h2"))


def apply(bed: Bed, mtu: int = 9000) -> None:
    """Small messages pass, so the job starts; the first large one hangs."""
    for host in bed:
        host.ip(f"link set eth0 mtu {mtu}")
        plain_frames(host)
