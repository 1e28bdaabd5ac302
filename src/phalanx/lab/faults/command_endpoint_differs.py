"""The torchrun command of one node has another rendezvous endpoint."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import UNSET

EXPECTED = Expected(
    cause="rendezvous-place-differs",
    symptom="comm.hang-timeout",
    only_outside=True,
    hosts=("h2",),
    at_least=3,
    held_back=True,
)
_TORCH = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def apply(bed: Bed) -> None:
    """The node was told to meet at itself."""
    for host in bed:
        host.variables |= dict.fromkeys(_TORCH, UNSET)
        place = "h2" if host.number == 2 else "h0"
        line = f"python -m torch.distributed.run --nnodes 3 --rdzv_backend c10d --rdzv_endpoint {place}:29400 train.py"
        bed.commands[host.name] = f"{host.name}: {line}"
