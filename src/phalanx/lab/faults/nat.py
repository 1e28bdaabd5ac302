"""One host is behind a router that translates its address: it reaches the others, they do not reach it."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import put_behind_nat

EXPECTED = Expected(cause="behind-nat", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """A virtual machine with a network of its own, or a container without the host's."""
    put_behind_nat(bed, host)
