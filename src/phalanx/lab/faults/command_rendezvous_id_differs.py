"""The torchrun command of one node has another rendezvous id."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import UNSET

EXPECTED = Expected(
    cause="rendezvous-id-differs", symptom="comm.hang-timeout", only_outside=True, hosts=("h1",), at_least=3
)
_TORCH = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def apply(bed: Bed) -> None:
    """A run was numbered anew on two of three nodes."""
    for host in bed:
        host.variables |= dict.fromkeys(_TORCH, UNSET)
        run = 17 if host.number == 1 else 18
        line = f"torchrun --nnodes 3 --rdzv-id {run} --rdzv-backend c10d --rdzv-endpoint h0:29400 train.py"
        bed.commands[host.name] = f"{host.name}: {line}"
