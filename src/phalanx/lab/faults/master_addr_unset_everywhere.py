"""MASTER_ADDR is not set on any host, though ranks are numbered."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import UNSET

EXPECTED = Expected(cause="master-addr-unset", hosts=("h0", "h1", "h2"))


def apply(bed: Bed) -> None:
    """The script that starts the job does not export it."""
    for host in bed:
        host.variables |= {"MASTER_ADDR": UNSET, "MASTER_PORT": UNSET}
