"""The name of an interface holds a soft hyphen, on all hosts."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="stray-characters-in-value", hosts=("h0", "h1", "h2"))


def apply(bed: Bed) -> None:
    """Copied from a web page."""
    bed.set_variables({"NCCL_SOCKET_IFNAME": "eth\u00ad0"})
