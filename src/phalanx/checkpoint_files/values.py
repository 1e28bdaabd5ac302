"""Looks through the numbers of tensors for NaN and infinities, and checks the checksums that files give, in pieces of a few MiB."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import compress

from phalanx.checkpoint_files.dtypes import FLOATS, Float
from phalanx.checkpoint_files.model import Span, Tensor
from phalanx.checkpoint_files.reading import pieces


@dataclass(frozen=True, slots=True)
class NotFinite:
    """What is not a number in one tensor."""

    tensor: Tensor
    nans: int
    infinities: int
    first: int  # place of the first among the tensor's numbers
    count: int  # numbers in all


@dataclass(slots=True)
class Scanned:
    """What reading all storages showed."""

    not_finite: list[NotFinite]
    wrong: list[Span]  # whose bytes do not match the checksum
    right: int  # spans whose bytes do
    sums: dict[tuple[object, int, int], int]  # a checksum of each storage: alike means the same numbers
    read: int = 0


def scan(tensors: Iterable[Tensor], say: Callable[[str], None], most: int | None = None) -> Scanned:
    """Read every storage once, and those with something not finite again for each tensor in it."""
    by_span: dict[tuple[object, int, int], tuple[Span, list[Tensor]]] = {}
    for tensor in tensors:
        if tensor.span is not None and tensor.span.length:
            by_span.setdefault(tensor.span.key, (tensor.span, []))[1].append(tensor)
    total = sum(span.length for span, _ in by_span.values())
    found = Scanned([], [], 0, {})
    for key, (span, users) in by_span.items():
        if most is not None and found.read + span.length > most:
            continue
        suspect, crc = _first_look(span, users[0].dtype, lambda done: _say(say, found.read + done, total))
        found.read += span.length
        found.sums[key] = crc
        if span.crc is not None:
            if crc == span.crc:
                found.right += 1
            else:
                found.wrong.append(span)
        if suspect:
            found.not_finite.extend(filter(None, (_count(tensor) for tensor in users)))
    return found


def _say(say: Callable[[str], None], done: int, total: int) -> None:
    say(f"reading values: {done / (1 << 20):,.0f} of {total / (1 << 20):,.0f} MiB")


def _first_look(span: Span, dtype: str, done: Callable[[int], None]) -> tuple[bool, int]:
    """Whether some number may be not finite, by the highest byte of each, and the checksum of all bytes."""
    form = FLOATS.get(dtype)
    crc, at, suspect = 0, 0, False
    for data in pieces(span):
        crc = zlib.crc32(data, crc)
        if form is not None and not suspect:
            high = data[form.size - 1 :: form.size] if form.size > 1 else data
            suspect = any(byte in high for byte in _suspects(form))
        at += len(data)
        done(at)
    return suspect, crc


@cache
def _suspects(form: Float) -> tuple[int, ...]:
    """Values of the highest byte that a number which is not finite can have."""
    mask = (form.exponent >> (8 * (form.size - 1))) & 0xFF
    return tuple(byte for byte in range(256) if byte & mask == mask)


@cache
def _table(mask: int) -> bytes:
    return bytes(1 if byte & mask == mask else 0 for byte in range(256))


def _count(tensor: Tensor) -> NotFinite | None:
    """The numbers of one tensor that are not finite; one whose values are scattered is counted over its whole storage."""
    form = FLOATS.get(tensor.dtype)
    if form is None or tensor.span is None:
        return None
    span = tensor.span
    if tensor.is_plain and tensor.size:
        span = Span(span.path, span.offset + tensor.start, tensor.size)
    low = form.exponent | 1 << (8 * form.size - 1)  # minus infinity
    nans = infinities = lows = at = 0
    first = -1
    bytes_set = 0
    for data in pieces(span):
        whole = data[: len(data) // form.size * form.size]
        marks = _marks(whole, form)
        if 1 in marks:
            places = list(compress(range(len(marks)), marks))
            first = at + places[0] if first < 0 else first
            bad = [int.from_bytes(whole[one * form.size : (one + 1) * form.size], "little") for one in places]
            endless = sum(1 for one in bad if form.has_infinity and not one & form.mantissa)
            infinities += endless
            nans += len(bad) - endless
            lows += bad.count(low)
        bytes_set += len(whole) - whole.count(0)
        at += len(marks)
    set_in_low = sum(byte > 0 for byte in low.to_bytes(form.size, "little"))
    if not nans and lows == infinities and bytes_set == lows * set_in_low:
        return None  # nothing but zero and minus infinity: the mask of an attention layer, or all is finite
    return NotFinite(tensor, nans, infinities, first, at)


def _marks(data: bytes, form: Float) -> bytes:
    """A byte for each number: 1 where the exponent's bits are all set."""
    marks: bytes | None = None
    for place in range(form.size - 1, -1, -1):
        mask = (form.exponent >> (8 * place)) & 0xFF
        if not mask:
            break
        column = data[place :: form.size].translate(_table(mask))
        if marks is None:
            marks = column
        else:
            both = int.from_bytes(marks, "little") & int.from_bytes(column, "little")
            marks = both.to_bytes(len(column), "little")
        if 1 not in marks:
            break
    return marks or b""
