"""Nothing is broken, but all cores are busy."""

import os
import sys

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.services import keep

EXPECTED = Expected(held_back=True)


def apply(bed: Bed) -> None:
    """Twice as many loops as cores; they end with the bed."""
    for _ in range(2 * (os.cpu_count() or 1)):
        keep(
            bed, [*bed.hosts[0].entry, "--", sys.executable, "-c", "print('up', flush=True)\nwhile True: pass"], "load"
        )
