"""An MCA parameter is misspelt in the mpirun command."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="variable-misspelt", symptom="comm.unexpected-protocol", only_outside=True, held_back=True)


def apply(bed: Bed) -> None:
    """Open MPI ignores it without a word."""
    bed.command = "mpirun -np 3 -H h0,h1,h2 --mca btl_tcp_if_inculde eth0 python -m train"
