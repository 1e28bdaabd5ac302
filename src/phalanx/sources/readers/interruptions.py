"""A job that is ended from outside, and when: torchrun's and Slurm's words.

W1116 22:36:24.800000 20982 torch/distributed/elastic/agent/server/api.py:753] Received 15 death signal, shutting down workers
slurmstepd: error: *** JOB 88213 ON node07 CANCELLED AT 2026-11-16T21:04:11 DUE TO TIME LIMIT ***
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.sources.window import Window

SOURCE = "interruption"
TRIGGERS = (" death signal, shutting down workers", "CANCELLED AT ")

_TOLD = re.compile(r"Received (?:15|2|1|Signals\.SIG\w+) death signal|(?:JOB|STEP|slurmstepd).{0,60}CANCELLED AT \d{4}")


def read(window: Window) -> Iterator[Event]:
    """The moment at which the job was ended."""
    if _TOLD.search(window.text):
        yield window.event(EventKind.LINE, SOURCE, text=window.text.strip())
