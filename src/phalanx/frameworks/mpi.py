"""Scripts that read their rank from the variables of an MPI launcher, without speaking MPI themselves."""

from phalanx.frameworks.launching import Meeting, Seat

NAME = "mpi"
IMPORTS: tuple[str, ...] = ()


def ports_needed(size: int) -> int:
    """One, for a script that wants to meet somewhere."""
    return 1


def variables(seat: Seat, meeting: Meeting) -> dict[str, str]:
    """What Open MPI, MPICH and Intel MPI tell a process of its place."""
    rank, size = str(seat.rank), str(seat.size)
    return {
        "OMPI_COMM_WORLD_RANK": rank,
        "OMPI_COMM_WORLD_SIZE": size,
        "OMPI_COMM_WORLD_LOCAL_RANK": rank,
        "OMPI_COMM_WORLD_LOCAL_SIZE": size,
        "OMPI_COMM_WORLD_NODE_RANK": rank,
        "PMI_RANK": rank,
        "PMI_SIZE": size,
        "MPI_LOCALRANKID": rank,
        "MPI_LOCALNRANKS": size,
        "MASTER_ADDR": meeting.host,
        "MASTER_PORT": str(meeting.ports[0]),
    }
