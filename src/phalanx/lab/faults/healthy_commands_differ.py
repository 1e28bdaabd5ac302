"""Nothing is broken; the torchrun commands differ in the number of processes, which an elastic rendezvous allows."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import JOB_VARIABLES, UNSET

EXPECTED = Expected(only_outside=True, held_back=True)


def apply(bed: Bed) -> None:
    """Hosts with two, three and four GPUs."""
    for host in bed:
        host.variables |= dict.fromkeys(JOB_VARIABLES, UNSET)
        count = len(bed.hosts)
        told = f"--nnodes={count} --nproc-per-node={2 + host.number} --rdzv-id 1 --rdzv-backend c10d --rdzv-endpoint h0:29400"
        bed.commands[host.name] = f"{host.name}: torchrun {told} -m train"
