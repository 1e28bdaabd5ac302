"""Looks for thousands of needles at once in a stream of bytes, in pieces of bounded size.

Hyperscan finds them; Python's expressions are only run on lines that hold one. A line is cut out of the piece
around each hit, so a file of one endless line is no special case.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

import hyperscan

from phalanx.sources.database import Data, Occurrence, compiled, scan, spelt_out
from phalanx.sources.numbering import Gaps, Numbers
from phalanx.sources.patience import OutOfTimeError, Patience
from phalanx.sources.text import LONGEST_LINE

PIECE = 1 << 20  # stays in the processor's cache while it is searched and its lines are counted
LOOK_AHEAD = 64 << 10  # a reader may look this far beyond a hit; less than an edge, by which pieces overlap
_AT_ONCE = 64 << 10
EDGE = 256 << 10  # what counts as the head and the tail of a file


LiteralsBy = Callable[[Callable[[str], bool]], frozenset[str]]


@dataclass(slots=True)
class Piece:
    """A stretch of a file; hits are only taken below `limit`, what follows comes again in the next piece.

    Good until the next piece is asked for: `data` is then filled anew.
    """

    data: Data
    limit: int
    numbers: Numbers
    is_last: bool
    is_first: bool = False
    skipped: int = 0  # bytes before this piece that nobody saw

    def line_at(self, offset: int) -> int:
        """The number of the line that begins at or holds this offset; of a file with gaps, a provisional one."""
        return self.numbers.at(offset)

    @property
    def ends(self) -> list[tuple[int, int]]:
        """The head and the tail of the file, as far as they lie in this piece: expressions, which are slower to look
        for than literals, are only looked for there. A job's start and its death are told at the ends of a log."""
        size = len(self.data)
        if size <= 2 * EDGE:
            return [(0, size)] if self.is_first or self.is_last else []
        head = [(0, EDGE)] if self.is_first else []
        return head + ([(self.data.rfind(b"\n", 0, size - EDGE) + 1, size)] if self.is_last else [])


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that holds at least one needle: its bounds in the piece, and which needles."""

    start: int
    stop: int
    needles: frozenset[int]


@dataclass(frozen=True, slots=True)
class Needle:
    """Something to look for: a literal, or an expression where no literal of it is rare enough.

    `once` asks for one occurrence a piece only, for what is common and needs to be seen just once. Of an expression, one of
    `literals` stands in every match; `literals_by` finds other such strings, slowly, if they are common in the eyes of who asks.
    """

    text: str
    is_expression: bool = False
    ignores_case: bool = False
    once: bool = False
    literals: frozenset[str] = field(default=frozenset(), compare=False)
    literals_by: LiteralsBy | None = field(default=None, compare=False)

    def literals_rare_by(self, is_common: Callable[[str], bool]) -> frozenset[str]:
        """Strings of which one stands in every match, none of them common if that can be; of a few expressions none is known."""
        if not self.is_expression:
            return frozenset({self.text})
        if self.literals_by is not None and (not self.literals or any(map(is_common, self.literals))):
            return self.literals_by(is_common)
        return self.literals


class NeedleSet:
    """A compiled set of needles; `scan` tells which of them stand where.

    Plain literals, literals in any case and expressions are three databases: each kind slows the others down.
    """

    def __init__(self, needles: Sequence[Needle]) -> None:
        """A needle's position in the sequence is its id."""
        self.needles = tuple(needles)
        numbered = list(enumerate(needles))
        literals = [(number, needle) for number, needle in numbered if not needle.is_expression]
        self._literals = [
            _compile([pair for pair in literals if not pair[1].ignores_case]),
            _compile([pair for pair in literals if pair[1].ignores_case]),
        ]
        self._expressions = _compile([pair for pair in numbered if pair[1].is_expression])

    def scan(
        self, data: Data, stretches: Sequence[tuple[int, int]] | None = None, stop: int | None = None
    ) -> list[Occurrence]:
        """Every occurrence, in order of the offset: of literals before `stop`, of expressions in these stretches, if given."""
        found: list[Occurrence] = []
        for database in self._literals:
            scan(database, data, found, (0, len(data) if stop is None else stop))
        for stretch in ((0, len(data)),) if stretches is None else stretches:
            scan(self._expressions, data, found, stretch)
        found.sort()
        return found


def _compile(needles: Sequence[tuple[int, Needle]]) -> hyperscan.Database | None:
    if not needles:
        return None
    return compiled(
        [_expression(needle) for _, needle in needles],
        [number for number, _ in needles],
        [_flags(needle) for _, needle in needles],
        kept_as="needles",
    )


def compile_needles(needles: Sequence[Needle], ids: Sequence[int]) -> hyperscan.Database | None:
    """A database of these needles, None for none."""
    if not needles:
        return None
    expressions, flags = [_expression(needle) for needle in needles], [_flags(needle) for needle in needles]
    return compiled(expressions, list(ids), flags, kept_as="common")  # the same logs are often read again


_ANCHORS = re.compile(r"(?<![\\\[])(?:\^|\$)")
_BOUNDED = re.compile(r"(?<!\\)(\.|\\[SsWwd])\{\d*,\d+\}\??")


def _expression(needle: Needle) -> bytes:
    """A widened form, quick to compile: no anchors (prefixes stand before a line here) and no bounds on gaps.

    Lines that it finds are matched again, exactly.
    """
    if needle.is_expression:
        return _BOUNDED.sub(r"\1*", _ANCHORS.sub("", needle.text)).encode()
    return spelt_out(needle.text.encode())


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


def room_for_pieces(size: int = PIECE) -> bytearray:
    """A buffer for `pieces`, which may serve one stream after the other."""
    return bytearray(size + EDGE)


def pieces(
    stream: BinaryIO,
    size: int = PIECE,
    gaps: Gaps | None = None,
    room: bytearray | None = None,
    true_line: Callable[[int], int] | None = None,
    patience: Patience | None = None,
) -> Iterator[Piece]:
    """The stream in overlapping pieces that begin at line starts, so that no line or message is cut in two.

    All but the last are one and the same buffer, filled anew. Where `gaps` are given, not every line is counted;
    where `true_line` is, lines had other numbers once. Once `patience` is short, all up to the last piece is passed over, and
    `skipped` of that piece tells how much.
    """
    buffer = room_for_pieces(size) if room is None else room
    carried, first_line, offset, is_first, skipped = 0, 1, 0, True, 0
    while True:
        if len(buffer) - carried < size // 2:  # a long line is carried along
            buffer = buffer[:carried] + bytearray(size)
        filled, damage = _fill(stream, buffer, carried)
        if filled < len(buffer):
            if filled:
                data = bytes(memoryview(buffer)[:filled])
                yield Piece(data, filled, Numbers(data, first_line, offset, gaps, true_line), True, is_first, skipped)
            if damage is not None:
                raise damage
            return
        limit = max(filled - EDGE, 0)  # so that the last piece holds the whole tail
        cut = buffer.rfind(b"\n", 0, limit) + 1
        if cut == 0:  # one line longer than a piece: go on in the middle of it
            cut = limit
        piece = Piece(buffer, cut, Numbers(buffer, first_line, offset, gaps, true_line), False, is_first)
        if is_first or patience is None or not patience.is_short:
            yield piece
        elif patience.is_over:
            raise OutOfTimeError(f"read up to its first {offset >> 20} MiB when the time limit was over")
        else:
            skipped += cut
        first_line = piece.line_at(cut)
        offset += cut
        is_first = False
        carried = filled - cut
        with memoryview(buffer) as view:  # a slice of the buffer itself would be a copy
            view[:carried] = view[cut:]
        if gaps is not None and patience is not None and patience.is_short:
            passed = _go_to_end(stream, offset, len(buffer))
            if passed:
                gaps.add(offset, offset + passed, first_line)
                first_line, offset, skipped, carried = first_line + passed, offset + passed, skipped + passed, 0


def _go_to_end(stream: BinaryIO, offset: int, size: int) -> int:
    """Go on at the first line that begins in the last `size` bytes of a file; how many bytes behind `offset` that passes over."""
    target = os.fstat(stream.fileno()).st_size - size
    if target <= offset + size:
        return 0
    stream.seek(target)
    return target + len(stream.readline(size // 2)) - offset


def _fill(stream: BinaryIO, buffer: bytearray, filled: int) -> tuple[int, Exception | None]:
    """How much of the buffer is filled now; all of it, but at the end, or where the stream is damaged: then also the error.

    What a decompressor could read before the damage is not lost: it is asked for little at a time.
    """
    view = memoryview(buffer)
    at_once = len(buffer) if isinstance(getattr(stream, "raw", None), io.FileIO) else _AT_ONCE
    while filled < len(buffer):
        try:
            count = stream.readinto1(view[filled : filled + at_once])  # type: ignore[attr-defined]
        except Exception as error:  # whatever a decompressor raises; the caller gets it behind the data
            return filled, error
        if not count:
            break
        filled += count
    return filled, None


class Scans(Protocol):
    """Whatever tells which needles stand where."""

    def scan(
        self, data: Data, stretches: Sequence[tuple[int, int]] | None = None, stop: int | None = None
    ) -> list[Occurrence]:
        """Every occurrence, in order of the offset: of literals before `stop`, of expressions in these stretches, if given."""


def hits(piece: Piece, needles: Scans, done: Container[int] = frozenset()) -> Iterator[Hit]:
    """The lines of a piece that hold needles, each once, in order.

    Needles in `done`, to which the caller may add, only count in the last stretch of the file.
    """
    data, index = piece.data, 0
    ends_a_line = data[piece.limit - 1 : piece.limit] == b"\n"
    found = needles.scan(data, piece.ends, piece.limit if ends_a_line else None)
    tail = len(data) - EDGE if piece.is_last else len(data)
    while index < len(found):
        end, literal = found[index]
        index += 1
        if literal in done and end <= tail:
            continue
        start = _line_start(data, end - 1)
        if start >= piece.limit and not piece.is_last:
            return
        stop = _line_stop(data, end)
        inside = {literal}
        while index < len(found) and found[index][0] <= stop:
            inside.add(found[index][1])
            index += 1
        yield Hit(start, stop, frozenset(inside))


def _line_start(data: Data, at: int) -> int:
    """A line begins after a newline or a carriage return (progress bars), or a bounded way back."""
    floor = max(0, at - LONGEST_LINE // 2)
    return max(data.rfind(b"\n", floor, at), data.rfind(b"\r", floor, at), floor - 1) + 1


def _line_stop(data: Data, at: int) -> int:
    ceiling = min(len(data), at + LONGEST_LINE // 2)
    ends = [place for place in (data.find(b"\n", at, ceiling), data.find(b"\r", at, ceiling)) if place >= 0]
    return min(ends, default=ceiling)
