"""The torchrun command of each node names that node itself as the master."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import JOB_VARIABLES, UNSET

EXPECTED = Expected(cause="master-addr-differs", at_least=3, only_outside=True)


def apply(bed: Bed) -> None:
    """A script that took the name of the host that it runs on."""
    for host in bed:
        host.variables |= dict.fromkeys(JOB_VARIABLES, UNSET)
        bed.commands[host.name] = (
            f"{host.name}: torchrun --nnodes 3 --node-rank {host.number} --master-addr {host.name} --master-port 29500 train.py"
        )
