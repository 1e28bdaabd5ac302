"""One node is sent to another rendezvous endpoint than the others."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import UNSET

EXPECTED = Expected(
    cause="rendezvous-place-differs",
    symptom="comm.hang-timeout",
    hosts=("h2",),
    at_least=3,
    also=("rendezvous-endpoint-differs",),
)


def apply(bed: Bed) -> None:
    """A port was changed in one of the commands."""
    for host in bed:
        port = 29401 if host.number == 2 else 29400
        host.variables |= {"PET_NNODES": "3", "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": f"h0:{port}"}
        host.variables |= dict.fromkeys(("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"), UNSET)
