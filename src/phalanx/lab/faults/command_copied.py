"""The torchrun command of one node was copied to all, with its node rank."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import JOB_VARIABLES, UNSET

EXPECTED = Expected(
    cause="node-rank-duplicate", hosts=("h0", "h1", "h2"), at_least=3, held_back=True, only_outside=True
)


def apply(bed: Bed) -> None:
    """A file of commands in which nobody changed the number."""
    for host in bed:
        host.variables |= dict.fromkeys(JOB_VARIABLES, UNSET)
        bed.commands[host.name] = (
            f"{host.name}: python3 -m torch.distributed.run --nnodes=3 --node_rank=1 --master_addr=h0 --master_port=29500 train.py"
        )
