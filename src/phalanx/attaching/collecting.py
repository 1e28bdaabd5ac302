"""What runs on the other machines: `python -m phalanx.attaching.collecting [--dump] [--within NAME=value]` prints what this machine sees.

A program of its own, because it starts on every host of a job at once, and the command line's library takes longer to load than the looking.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(words: Sequence[str]) -> int:
    """One line of JSON behind a mark, or what went wrong."""
    from phalanx.attaching.hosts import collect_line
    from phalanx.attaching.jobs import find_jobs

    within = words[words.index("--within") + 1] if "--within" in words else ""
    sys.stdout.write(collect_line(find_jobs(within=within), may_ask="--dump" in words) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
