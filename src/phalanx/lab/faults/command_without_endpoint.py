"""The torchrun command of one node lacks the endpoint of the rendezvous."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import JOB_VARIABLES, UNSET

EXPECTED = Expected(
    cause="rendezvous-place-differs", symptom="comm.hang-timeout", hosts=("h2",), at_least=3, only_outside=True
)


def apply(bed: Bed) -> None:
    """Cut off when it was copied."""
    for host in bed:
        host.variables |= dict.fromkeys(JOB_VARIABLES, UNSET)
        endpoint = "" if host.number == 2 else "--rdzv-endpoint h0:29400 "
        bed.commands[host.name] = f"{host.name}: torchrun --nnodes 3 --rdzv-id 1 --rdzv-backend c10d {endpoint}train.py"
