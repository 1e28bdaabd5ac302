"""Every host has docker0 and virbr0, and MPI is told to use eth0."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected()


def apply(bed: Bed) -> None:
    """As clusters with containers are set up."""
    for host in bed:
        host.ip(
            "link add docker0 type bridge",
            "addr add 172.17.0.1/16 dev docker0",
            "link add virbr0 type bridge",
            "addr add 192.168.122.1/24 dev virbr0",
            "link set virbr0 up",
        )
        host.variables |= {
            "OMPI_COMM_WORLD_RANK": str(host.number),
            "OMPI_COMM_WORLD_SIZE": str(len(bed.hosts)),
            "OMPI_MCA_btl_tcp_if_include": "eth0",
            "OMPI_MCA_oob_tcp_if_include": "eth0",
        }
