"""Hyperscan's databases: compiled once, kept in the user's cache, and searched.

Compiling a few dozen expressions takes longer than reading most logs; a kept database is loaded in a millisecond.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache as remembered
from typing import Any

import hyperscan

from phalanx import cache

Data = bytes | bytearray
Occurrence = tuple[int, int]  # the offset at which a needle ends, and its id


def compiled(
    expressions: Sequence[bytes], ids: Sequence[int], flags: Sequence[int], kept_as: str = ""
) -> hyperscan.Database:
    """A database of these expressions; with `kept_as`, a kind, from the cache, or for it. Raises hyperscan.error if one is refused."""
    key = ""
    if kept_as:
        settings = (f"{number} {flag}" for number, flag in zip(ids, flags, strict=True))
        key = cache.key_of([*_engine(), *settings, *expressions])
        kept = cache.load(kept_as, key)
        if kept is not None:
            with suppress(hyperscan.error):  # made by another build or for another processor
                return _loaded(kept)
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=list(expressions), ids=list(ids), flags=list(flags), elements=len(expressions))
    if kept_as:
        cache.save(kept_as, key, hyperscan.dumpb(database))
    return database


def _loaded(raw: bytes) -> hyperscan.Database:
    database = hyperscan.loadb(raw, hyperscan.HS_MODE_BLOCK)
    database.scratch = hyperscan.Scratch(database)  # refuses a database that this processor cannot run
    return database


@remembered
def _engine() -> tuple[str | bytes, ...]:
    """What a database depends on besides its expressions."""
    features = b""
    with suppress(OSError), open("/proc/cpuinfo", "rb") as file:  # noqa: PTH123, no path of ours
        lines = file.read(8192).split(b"\n")
        features = next((line for line in lines if line.startswith((b"flags", b"Features"))), b"")
    return str(getattr(hyperscan, "__version__", "")), os.uname().machine, features


def spelt_out(literal: bytes) -> bytes:
    """An expression for exactly these bytes."""
    return ("\\x" + literal.hex("|").replace("|", "\\x")).encode()


def scan(
    database: hyperscan.Database | None, data: Data, found: list[Occurrence], stretch: tuple[int, int] | None = None
) -> None:
    """Add to `found` what the database finds in the data, or in a stretch of it."""
    offset, stop = stretch or (0, len(data))
    if database is None or offset >= stop:
        return
    append = found.append

    def note(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
        append((end + offset, number))

    part: Any = memoryview(data)[offset:stop]  # any buffer will do, though the stubs name two
    database.scan(part, match_event_handler=note)
