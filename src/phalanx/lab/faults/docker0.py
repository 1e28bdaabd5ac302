"""Every host has a docker0 with the same address, and MPI is left to choose."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="docker0-same-address", symptom="comm.hang-timeout", hosts=("h0", "h1", "h2"))


def apply(bed: Bed) -> None:
    """MPI tells the others all its addresses, this one too, and they connect to themselves."""
    for host in bed:
        host.ip("link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "link set docker0 up")
        host.variables |= {
            "OMPI_COMM_WORLD_RANK": str(host.number),
            "OMPI_COMM_WORLD_SIZE": str(len(bed.hosts)),
            "OMPI_MCA_btl": "tcp,self",
        }
