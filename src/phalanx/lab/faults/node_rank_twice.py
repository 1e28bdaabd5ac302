"""Two nodes are told the same node rank."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import UNSET

EXPECTED = Expected(cause="node-rank-duplicate", hosts=("h1", "h2"), at_least=3)


def apply(bed: Bed) -> None:
    """The command of one node was copied to the other."""
    for host in bed:
        torchrun = {"PET_NNODES": str(len(bed.hosts)), "PET_NODE_RANK": str(min(host.number, 1))}
        host.variables |= {**torchrun, "PET_MASTER_ADDR": "10.77.0.10", "PET_MASTER_PORT": "29500"}
        host.variables |= dict.fromkeys(("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"), UNSET)
