"""The link of one host carries far less than those of the others."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.host import load
from phalanx.lab.services import plain_frames

EXPECTED = Expected(cause="narrow-link", symptom="perf.low-efficiency", hosts=("h1",))


def apply(bed: Bed, host: str = "h1", mbit: int = 10) -> None:
    """A cable that was negotiated down, or a shaped virtual network card."""
    shape = ["root", "tbf", "rate", f"{mbit}mbit", "burst", "20k", "latency", "60ms"]
    plain_frames(bed[host])
    for other in bed:
        plain_frames(other)
    bed[host].run(["tc", "qdisc", "add", "dev", "eth0", *shape])
    load([*bed.switch_entry, "tc", "qdisc", "add", "dev", bed[host].port, *shape], "", "switch")
