"""Tells how much processor time of a process is work: threads that only wake to ask whether there is something to do are left out.

Horovod's background thread, a heartbeat or a progress bar wakes a thousand times a second and runs for some microseconds. On an
idle machine that adds up to a third of a core by the kernel's ticks, although the rank sleeps. Threads that work run until
they are done or their time slice is over, which takes milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from phalanx.run.watch.processes import read_file

_POLL_S = (
    0.0005  # the longest mean run of a thread that only asks; a Python thread that works keeps the interpreter for 5 ms
)
_BUSY_TOGETHER = 0.7  # of a core: operations in small pieces, handed from thread to thread, as in a graph of TensorFlow


@dataclass(frozen=True, slots=True)
class ThreadSample:
    """One thread at one moment. Counters only grow."""

    ran: float  # seconds; exact, where the ticks of /proc/PID/stat overrate who runs shortly and often
    runs: int  # how often it was given a processor


def sample_threads(pid: int) -> dict[int, ThreadSample]:
    """All threads of a process by their numbers; empty where the kernel does not count them."""
    try:
        numbers = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - it is called twice a second
    except OSError:
        return {}
    found = {}
    for number in numbers:
        fields = read_file(f"/proc/{pid}/task/{number}/schedstat").split()
        if len(fields) > 2:
            found[int(number)] = ThreadSample(int(fields[0]) / 1e9, int(fields[2]))
    return found


def work_between(
    pid: int, before: Mapping[int, ThreadSample], now: Mapping[int, ThreadSample], whole: float, seconds: float
) -> float:
    """Processor seconds of work between two looks; `whole`, those of the process, where threads are not known or have ended."""
    if not before or before.keys() - now.keys():
        return whole
    work = asked = 0.0
    for number, thread in now.items():
        old = before.get(number, ThreadSample(0.0, 0))
        ran = thread.ran - old.ran
        # the main thread runs the script: whether it turns in a circle is for its stack to tell
        if number != pid and ran < _POLL_S * (thread.runs - old.runs):
            asked += ran
        else:
            work += ran
    return work + asked if asked >= _BUSY_TOGETHER * seconds else work
