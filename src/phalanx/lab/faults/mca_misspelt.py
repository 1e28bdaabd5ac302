"""The name of an MCA parameter is misspelt, and Open MPI silently ignores it."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(
    cause="variable-misspelt", symptom="comm.unexpected-protocol", hosts=("h0", "h1", "h2"), held_back=True
)


def apply(bed: Bed, name: str = "OMPI_MCA_btl_tcp_if_inlcude") -> None:
    """It is set, and has no effect."""
    for host in bed:
        host.variables |= {
            "OMPI_COMM_WORLD_RANK": str(host.number),
            "OMPI_COMM_WORLD_SIZE": str(len(bed.hosts)),
            name: "eth0",
        }
