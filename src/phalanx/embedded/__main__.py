"""`python -m phalanx.embedded BUNDLE`: the companion, started by the first rank of a node."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from phalanx.embedded.companion import Companion


def main() -> None:
    """Watch until the ranks are gone. What the launcher sends to end the job is not for us: we end with the ranks."""
    os.umask(0o077)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    Companion(Path(sys.argv[1])).run()


if __name__ == "__main__":
    main()
