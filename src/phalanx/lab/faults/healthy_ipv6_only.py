"""Nothing is broken; the hosts have IPv6 only."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import use_ipv6_only

EXPECTED = Expected()


def apply(bed: Bed) -> None:
    """MASTER_ADDR is a name."""
    use_ipv6_only(bed)
