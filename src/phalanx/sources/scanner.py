"""Looks for thousands of needles at once in a stream of bytes, in pieces of bounded size.

Hyperscan finds them; Python's expressions are only run on lines that hold one. A line is cut out of the piece
around each hit, so a file of one endless line is no special case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import hyperscan

from phalanx.sources.text import LONGEST_LINE

PIECE = 4 << 20
LOOK_AHEAD = 64 << 10  # a reader may look this far beyond a hit


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a file; hits are only taken below `limit`, what follows comes again in the next piece."""

    data: bytes
    limit: int
    first_line: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that holds at least one needle: its bounds in the piece, its number, and which needles."""

    start: int
    stop: int
    number: int
    needles: frozenset[int]


@dataclass(frozen=True, slots=True)
class Needle:
    """Something to look for: a literal, or an expression where no literal of it is rare enough.

    `once` asks for one occurrence a piece only, for what is common and needs to be seen just once.
    """

    text: str
    is_expression: bool = False
    ignores_case: bool = False
    once: bool = False


class NeedleSet:
    """A compiled set of needles; `scan` tells which of them stand where."""

    def __init__(self, needles: Sequence[Needle]) -> None:
        """A needle's position in the sequence is its id."""
        self._database: hyperscan.Database | None = None
        if needles:
            self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
            self._database.compile(
                expressions=[_expression(needle) for needle in needles],
                ids=list(range(len(needles))),
                flags=[_flags(needle) for needle in needles],
                elements=len(needles),
            )

    def scan(self, data: bytes) -> list[tuple[int, int]]:
        """(end offset, id) of every occurrence, in order of the offset."""
        found: list[tuple[int, int]] = []
        if self._database is None or not data:
            return found
        append = found.append

        def note(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append((end, number))

        self._database.scan(data, match_event_handler=note)
        found.sort()
        return found


_ANCHORS = re.compile(r"(?<![\\\[])(?:\^|\$)")
_BOUNDED = re.compile(r"(?<!\\)(\.|\\[SsWwd])\{\d*,\d+\}\??")


def _expression(needle: Needle) -> bytes:
    """A widened form, quick to compile: no anchors (prefixes stand before a line here) and no bounds on gaps.

    Lines that it finds are matched again, exactly.
    """
    if needle.is_expression:
        return _BOUNDED.sub(r"\1*", _ANCHORS.sub("", needle.text)).encode()
    return "".join(f"\\x{byte:02x}" for byte in needle.text.encode()).encode()


def _flags(needle: Needle) -> int:
    # Prefilter: what the engine cannot express (look-around) is widened instead of refused.
    flags = hyperscan.HS_FLAG_PREFILTER if needle.is_expression else 0
    flags |= hyperscan.HS_FLAG_CASELESS if needle.ignores_case else 0
    return int(flags | (hyperscan.HS_FLAG_SINGLEMATCH if needle.once else 0))


def refused_expressions(expressions: Sequence[str]) -> set[str]:
    """Those that the engine does not take; they are looked for by their literals instead."""
    try:
        NeedleSet([Needle(one, is_expression=True) for one in expressions])
    except hyperscan.error:
        if len(expressions) == 1:
            return set(expressions)
        half = len(expressions) // 2
        return refused_expressions(expressions[:half]) | refused_expressions(expressions[half:])
    return set()


def pieces(stream: BinaryIO, size: int = PIECE) -> Iterator[Piece]:
    """The stream in overlapping pieces that begin at line starts, so that no line or message is cut in two."""
    carried = b""
    first_line = 1
    while True:
        fresh = stream.read(size)
        data = carried + fresh
        if len(fresh) < size:  # buffered streams read short only at their end
            if data:
                yield Piece(data, len(data), first_line, True)
            return
        limit = max(len(data) - LOOK_AHEAD, 0)
        cut = data.rfind(b"\n", 0, limit) + 1
        if cut == 0:  # one line longer than a piece: go on in the middle of it
            cut = limit
        yield Piece(data, cut, first_line, False)
        first_line += data.count(b"\n", 0, cut)
        carried = data[cut:]


def hits(piece: Piece, needles: NeedleSet) -> Iterator[Hit]:
    """The lines of a piece that hold needles, each once, in order."""
    found = needles.scan(piece.data)
    data, position, number = piece.data, 0, piece.first_line
    index = 0
    while index < len(found):
        end, literal = found[index]
        start = _line_start(data, end - 1)
        if start >= piece.limit and not piece.is_last:
            return
        stop = _line_stop(data, end)
        inside = {literal}
        index += 1
        while index < len(found) and found[index][0] <= stop:
            inside.add(found[index][1])
            index += 1
        number += data.count(b"\n", position, start)
        position = start
        yield Hit(start, stop, number, frozenset(inside))


def _line_start(data: bytes, at: int) -> int:
    """A line begins after a newline or a carriage return (progress bars), or a bounded way back."""
    floor = max(0, at - LONGEST_LINE // 2)
    return max(data.rfind(b"\n", floor, at), data.rfind(b"\r", floor, at), floor - 1) + 1


def _line_stop(data: bytes, at: int) -> int:
    ceiling = min(len(data), at + LONGEST_LINE // 2)
    ends = [place for place in (data.find(b"\n", at, ceiling), data.find(b"\r", at, ceiling)) if place >= 0]
    return min(ends, default=ceiling)
