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
    local_rank, local_size = str(seat.at.local_rank), str(seat.at.local_size)
    return {
        "OMPI_COMM_WORLD_RANK": rank,
        "OMPI_COMM_WORLD_SIZE": size,
        "OMPI_COMM_WORLD_LOCAL_RANK": local_rank,
        "OMPI_COMM_WORLD_LOCAL_SIZE": local_size,
        "OMPI_COMM_WORLD_NODE_RANK": local_rank,
        "PMI_RANK": rank,
        "PMI_SIZE": size,
        "MPI_LOCALRANKID": local_rank,
        "MPI_LOCALNRANKS": local_size,
        "MASTER_ADDR": meeting.host,
        "MASTER_PORT": str(meeting.ports[0]),
    }
