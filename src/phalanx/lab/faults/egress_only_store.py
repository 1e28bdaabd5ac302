"""What one host opens is let out only to the port of the store."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="one-way-block", symptom="comm.hang-timeout", hosts=("h1",), at_least=3)


def apply(bed: Bed, host: str = "h1") -> None:
    """A network policy on egress."""
    bed.switch_filter(f'iifname "{bed[host].port}" tcp dport != 29500 tcp flags & (syn|ack) == syn drop')
