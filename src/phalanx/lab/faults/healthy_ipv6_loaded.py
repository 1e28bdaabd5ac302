"""Nothing is broken; the hosts have IPv6 only and two ranks each, and all cores are busy."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import load, use_ipv6_only

EXPECTED = Expected(held_back=True)


def apply(bed: Bed) -> None:
    """Twice as many loops as cores."""
    use_ipv6_only(bed)
    bed.put_ranks(2)
    load(bed)
