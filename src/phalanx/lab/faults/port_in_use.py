"""Another program of rank 0's host already listens on MASTER_PORT."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import listen

EXPECTED = Expected(cause="master-port-in-use", hosts=("h0",))


def apply(bed: Bed, host: str = "h0", port: int = 29500) -> None:
    """A left-over process that accepts and never says a word."""
    listen(bed, host, port, "")
