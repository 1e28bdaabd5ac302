"""Runs one command on every host of a bed at once, with each line of output under its host's name."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import TextIO

from phalanx.lab.bed import Bed


def run_everywhere(bed: Bed, command: Sequence[str], *, timeout: float, out: TextIO | None = None) -> dict[str, int]:
    """How the command ended on each host; what is still running when the time is up is ended, and counts as 124."""
    out = out or sys.stdout
    lock = threading.Lock()

    def copy(host: str, stream: TextIO) -> None:
        for line in stream:
            with lock:
                out.write(f"[{host}] {line if line.endswith(chr(10)) else line + chr(10)}")
                out.flush()

    running: dict[str, subprocess.Popen[str]] = {}
    readers = []
    for host in bed:
        running[host.name] = host.start(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
        stream = running[host.name].stdout
        assert stream is not None
        readers.append(threading.Thread(target=copy, args=(host.name, stream), daemon=True))
        readers[-1].start()
    end = time.monotonic() + timeout
    ended = {name: _wait(process, end) for name, process in running.items()}
    for reader in readers:
        reader.join(2)
    return ended


def _wait(process: subprocess.Popen[str], end: float) -> int:
    try:
        return process.wait(max(0.01, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
        return 124
