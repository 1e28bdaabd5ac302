"""A parameter of Open MPI is exported without MCA in its name."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="variable-misspelt", symptom="comm.unexpected-protocol", hosts=("h0", "h1", "h2"))


def apply(bed: Bed) -> None:
    """Nothing reads it."""
    bed.set_variables({"OMPI_btl_tcp_if_include": "eth0"})
