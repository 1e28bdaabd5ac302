"""Ranks that can only print: each writes its facts as tagged lines among the launcher's output, and one process reads all.

phalanx-check-1 4f2a81 0/3 eNqtWVtz2zYW…
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import uuid
import zlib
from collections.abc import Iterable
from typing import Any

from phalanx.preflight.options import CheckOptions
from phalanx.preflight.targets import this_machine

_TAG = "phalanx-check-1"
_PART = 900  # launchers cut or interleave long lines
_LINE = re.compile(rf"{_TAG} (?P<id>[0-9a-f]{{6}}) (?P<number>\d+)/(?P<count>\d+) (?P<data>[A-Za-z0-9+/=]+)")
_LARGEST = 8 << 20


def facts_to_print(options: CheckOptions) -> list[str]:
    """This process's facts as lines."""
    args = {"environment": dict(options.environment), "paths": list(options.paths), "code": list(options.code)}
    return lines_of(this_machine().ask("facts", args, options.patience + 2.0)[0])


def lines_of(told: dict[str, Any]) -> list[str]:
    """One JSON object as tagged lines."""
    data = base64.b64encode(zlib.compress(json.dumps(told).encode(), 9)).decode()
    parts = [data[start : start + _PART] for start in range(0, len(data), _PART)]
    name = uuid.uuid4().hex[:6]
    return [f"{_TAG} {name} {number}/{len(parts)} {part}" for number, part in enumerate(parts)]


def facts_in(lines: Iterable[str]) -> tuple[list[dict[str, Any]], int]:
    """All objects that stand in a text, whatever a launcher put before the lines, and how many were cut off."""
    parts: dict[str, dict[int, str]] = {}
    counts: dict[str, int] = {}
    for line in lines:
        for match in _LINE.finditer(line):
            parts.setdefault(match["id"], {})[int(match["number"])] = match["data"]
            counts[match["id"]] = int(match["count"])
    found: list[dict[str, Any]] = []
    broken = 0
    for name, pieces in parts.items():
        if len(pieces) != counts[name]:
            broken += 1
            continue
        try:
            raw = base64.b64decode("".join(pieces[number] for number in range(counts[name])))
            loaded = json.loads(zlib.decompressobj().decompress(raw, _LARGEST))
        except (binascii.Error, zlib.error, ValueError, KeyError):
            broken += 1
            continue
        if isinstance(loaded, dict):
            found.append(loaded)
    return found, broken
