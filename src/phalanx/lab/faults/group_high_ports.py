"""The network between the hosts lets new connections in to one host only on low ports."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="firewall-ephemeral-ports", symptom="comm.hang-timeout", hosts=("h2",), at_least=3)


def apply(bed: Bed, host: str = "h2") -> None:
    """A security group of the cloud: the host's own firewall is open."""
    bed.switch_filter(f'oifname "{bed[host].port}" tcp dport 30000-65535 tcp flags & (syn|ack) == syn drop')
