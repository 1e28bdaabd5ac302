"""MASTER_ADDR has a character in it that nobody sees."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="stray-characters-in-value", hosts=("h0", "h1", "h2"), also=("master-addr-unresolvable",))


def apply(bed: Bed) -> None:
    """Copied from a web page or a chat."""
    bed.set_variables({"MASTER_ADDR": "10.77.0.10\u200b"})
