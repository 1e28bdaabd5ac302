"""Saves the ring of a rank that could not: killed, or ended before it wrote what it held in memory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from phalanx.replay.inside.phalanx_record.journal import LOG, META, Journal
from phalanx.replay.inside.phalanx_record.ring import write_held


def save_ring(record: Path, room: int) -> int:
    """Write what the memory holds to the rank's record, unless the rank did it; how many bytes. Raises OSError, ValueError."""
    meta = json.loads((record / META).read_text(encoding="utf-8"))
    if "ended" in meta or "stopped" in meta:
        return 0
    lines = _whole_lines(record / LOG)
    written = {int(line["n"]) for line in lines if line.get("k") == "data"}
    step = max((int(line["s"]) for line in lines if line.get("k") == "step"), default=0)
    journal = Journal(str(record), first_file=len(list(record.glob("results-*.safetensors"))))
    begin, size = write_held(room, str(record), journal.tensor, journal.line, written)
    journal.line("written", why="saved after the rank had died", s=step, begin=begin, bytes=size)
    journal.close()
    return size


def _whole_lines(log: Path) -> list[dict[str, Any]]:
    """All lines; one that the rank's death cut is taken away, because others are to follow."""
    data = log.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(log, whole)
    return [json.loads(text) for text in data[:whole].splitlines()]
