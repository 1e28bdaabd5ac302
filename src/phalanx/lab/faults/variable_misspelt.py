"""A variable's name is misspelt, and the library silently ignores it."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="variable-misspelt", symptom="comm.unexpected-protocol", hosts=("h0", "h1", "h2"))


def apply(bed: Bed, name: str = "NCCL_SOCKET_IFNMAE", value: str = "eth0") -> None:
    """It is set, and has no effect."""
    bed.set_variables({name: value})
