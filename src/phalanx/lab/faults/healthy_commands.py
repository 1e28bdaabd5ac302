"""Each node has its own torchrun command, and they fit together."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import UNSET

EXPECTED = Expected(only_outside=True)
_TORCH = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def apply(bed: Bed) -> None:
    """They differ in the node rank alone."""
    for host in bed:
        host.variables |= dict.fromkeys(_TORCH, UNSET)
        line = f"torchrun --nnodes 3 --node-rank {host.number} --master-addr h0 --master-port 29500 train.py"
        bed.commands[host.name] = f"{host.name}: {line}"
