"""The torchrun command of one node has another --nnodes."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import UNSET

EXPECTED = Expected(cause="nnodes-differs", symptom="comm.hang-timeout", only_outside=True, hosts=("h2",), at_least=3)
_TORCH = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def apply(bed: Bed) -> None:
    """One of the commands was not edited."""
    for host in bed:
        host.variables |= dict.fromkeys(_TORCH, UNSET)
        count = 2 if host.number == 2 else len(bed.hosts)
        line = f"torchrun --nnodes {count} --node-rank {host.number} --master-addr h0 --master-port 29500 train.py"
        bed.commands[host.name] = f"{host.name}: {line}"
