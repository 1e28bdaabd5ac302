"""JAX: `jax.distributed.initialize()` finds the coordinator by a variable and its place by Open MPI's."""

import re

from phalanx.frameworks import mpi
from phalanx.frameworks.launching import Meeting, Seat

NAME = "jax"
SIGNS = re.compile(r"\bjax(?:lib)?[./\\]|\bimport jax\b|\bjax\.distributed\b|\bpjit\b")
OUTRANKS: tuple[str, ...] = ()
IMPORTS = ("jax", "flax", "optax", "haiku", "equinox")
OWN_DEVICES = True


def ports_needed(size: int) -> int:
    """One: the coordinator in rank 0."""
    return 1


def variables(seat: Seat, meeting: Meeting) -> dict[str, str]:
    """JAX reads the coordinator's address from a variable of its own, but number and count of processes only where it
    recognises a cluster. Open MPI's is the simplest of those: without the first of its variables JAX ignores the rest."""
    address = f"{meeting.host}:{meeting.ports[0]}"
    return {
        **mpi.variables(seat, meeting),
        "OMPI_MCA_orte_hnp_uri": f"0.0;tcp://{address}",
        "JAX_COORDINATOR_ADDRESS": address,
        "JAX_COORDINATOR_BIND_ADDRESS": address,
        "JAX_NUM_PROCESSES": str(seat.size),
        "JAX_PROCESS_ID": str(seat.rank),
    }
