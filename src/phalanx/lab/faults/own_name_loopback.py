"""A host's own name is 127.0.1.1, as some installers write it."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import change_name

EXPECTED = Expected(cause="own-name-loopback", symptom="comm.hang-timeout", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """Gloo then tells the others to connect to their own loopback."""
    change_name(bed[host], f"127.0.1.1 {host}")
