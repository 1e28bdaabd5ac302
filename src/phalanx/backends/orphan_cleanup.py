"""Runs a command if the process that started it vanishes: takes a job out of an engine's queue when its driver was killed.

    python -I -S orphan_cleanup.py COMMAND…     reads from standard input; a line revokes it, the end without one executes it

Uses nothing of ours and little of Python's: it waits as long as the job lasts.
"""

import os
import signal
import sys


def main() -> None:
    """Wait for a word, or for silence."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if not sys.stdin.readline():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)  # for the command
        os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
