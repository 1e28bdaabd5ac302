"""Connections from one host to another are dropped; the other way round they work."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="one-way-block", symptom="comm.hang-timeout", hosts=("h1", "h2"), at_least=3)


def apply(bed: Bed, source: str = "h1", target: str = "h2") -> None:
    """Whether the job works depends on who connects to whom."""
    bed.switch_filter(
        f'iifname "{bed[source].port}" oifname "{bed[target].port}" ip protocol tcp tcp flags syn / fin,syn,rst,ack drop'
    )
