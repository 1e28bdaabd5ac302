"""The PATH of the non-interactive shell of one host lacks Python."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.ssh import start_ssh

EXPECTED = Expected(cause="ssh-path", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", path: str = "/nowhere") -> None:
    """It is set in a file that only login shells read."""
    start_ssh(bed, {host: path})
