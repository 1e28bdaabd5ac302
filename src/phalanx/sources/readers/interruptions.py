"""A job that is ended from outside, and when: the words of torchrun, Slurm, PBS, JAX and Lightning.

W1116 22:36:24.800000 20982 torch/distributed/elastic/agent/server/api.py:753] Received 15 death signal, shutting down workers
slurmstepd: error: *** JOB 88213 ON node07 CANCELLED AT 2026-11-16T21:04:11 DUE TO TIME LIMIT ***
W1117 02:19:10.922374    6598 preemption_notifier.cc:90] SIGTERM caught at 2026-11-17T02:19:10.922371846+00:00
[rank: 1] Received SIGTERM: 15
=>> PBS: job killed: walltime 3610 exceeded limit 3600
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.sources.window import Window

SOURCE = "interruption"
TRIGGERS = (
    " death signal, shutting down workers",
    "CANCELLED AT ",
    "SIGTERM caught at ",
    "Received SIGTERM: 15",
    "PBS: job killed: ",
)

_TOLD = re.compile(
    r"Received (?:15|2|1|Signals\.SIG\w+) death signal|(?:JOB|STEP|slurmstepd).{0,60}CANCELLED AT \d{4}"
    r"|preemption_\w+\.cc:\d+\] SIGTERM caught at |\bReceived SIGTERM: 15\b|PBS: job killed: walltime"
)


def read(window: Window) -> Iterator[Event]:
    """The moment at which the job was ended."""
    if _TOLD.search(window.text):
        yield window.event(EventKind.LINE, SOURCE, text=window.text.strip())
