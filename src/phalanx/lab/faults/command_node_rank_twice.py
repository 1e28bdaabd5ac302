"""Two torchrun commands have the same --node-rank."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import UNSET

EXPECTED = Expected(cause="node-rank-duplicate", only_outside=True, hosts=("h1", "h2"), at_least=3, held_back=True)
_TORCH = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def apply(bed: Bed) -> None:
    """The command of one node was pasted on the other."""
    for host in bed:
        host.variables |= dict.fromkeys(_TORCH, UNSET)
        rank = min(host.number, 1)
        line = f"torchrun --nnodes={len(bed.hosts)} --node_rank={rank} --master_addr=h0 --master_port=29500 train.py"
        bed.commands[host.name] = f"{host.name}: {line}"
