"""Every host has a bridge of its own for virtual machines, and MPI is left to choose."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="mpi-uses-a-bridge", symptom="comm.hang-timeout", hosts=("h0", "h1", "h2"))


def apply(bed: Bed) -> None:
    """The addresses differ, but no other host reaches them."""
    for host in bed:
        address = f"192.168.{120 + host.number}.1/24"
        host.ip("link add virbr0 type bridge", f"addr add {address} dev virbr0", "link set virbr0 up")
        host.variables |= {
            "OMPI_COMM_WORLD_RANK": str(host.number),
            "OMPI_COMM_WORLD_SIZE": str(len(bed.hosts)),
            "OMPI_MCA_btl": "tcp,self",
        }
