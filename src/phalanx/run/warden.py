"""Ends every process of a job whose supervisor has vanished. A small process of its own that outlives the supervisor.

    python -I -S warden.py MARK     reads from standard input: a rank's process id a line, `forget`, `done`

If standard input ends without `done`, the supervisor is gone: killed, most likely. Then every process is ended that is in
the session or group of a rank, or carries the job's mark in its environment, whoever its parent is by now. Ranks die with
the supervisor by themselves where the kernel offers it; this is for what they have started.

Uses nothing of ours and little of Python's: it has to start quickly and cost nothing.
"""

import os
import signal
import sys
import time

_PATIENCE = 10.0  # seconds after which a process that will not die is left alone


def _number(text: str) -> int:
    return int(text) if text.isdigit() else -1


def belongs(process: int, ranks: set[int], mark: bytes) -> bool:
    """Whether a process is one of the job's."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123 (pathlib costs as much as the rest together)
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            return False
        if process in ranks or int(fields[2]) in ranks or int(fields[3]) in ranks:
            return True
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123
            return mark in file.read()
    except (OSError, ValueError, IndexError):
        return False


def end_all(ranks: set[int], mark: bytes) -> int:
    """Kill what is left of the job, again and again until nothing new appears. Returns how many were killed."""
    killed: set[int] = set()
    deadline = time.monotonic() + _PATIENCE
    quiet = 0
    while quiet < 2 and time.monotonic() < deadline:
        found = {
            process
            for process in map(_number, os.listdir("/proc"))  # noqa: PTH208
            if process > 1 and process != os.getpid() and belongs(process, ranks, mark)
        }
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                continue
            killed.add(process)
        quiet = 0 if found else quiet + 1
        time.sleep(0.05)
    return len(killed)


def main() -> None:
    """Wait for the supervisor's word, or for its silence."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    mark = sys.argv[1].encode()
    ranks: set[int] = set()
    for line in sys.stdin:
        word = line.strip()
        if word == "done":
            return
        if word == "forget":
            ranks.clear()
        elif word.isdigit():
            ranks.add(int(word))
    end_all(ranks, mark)


if __name__ == "__main__":
    main()
