"""TensorFlow's index of a checkpoint, read without TensorFlow: a sorted table of names to where their numbers are.

The table is LevelDB's: blocks of entries that share prefixes with the one before, and a footer that finds the index of
the blocks. Each value is a small protocol buffer: number format, shape, shard, offset, size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_FOOTER = 48
_MAGIC = 0xDB4775248B80FB57
MOST_ENTRIES = 2_000_000


class TableError(ValueError):
    """The bytes are no whole table."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a tensor is."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int


def read_table(data: bytes) -> tuple[int, dict[bytes, Entry]]:
    """How many files of numbers there are, and every entry by its name. Raises TableError."""
    if len(data) < _FOOTER or struct.unpack_from("<Q", data, len(data) - 8)[0] != _MAGIC:
        raise TableError("the table's footer, which is written last, is missing")
    try:
        footer = data[-_FOOTER:]
        _, at = _varint(footer, 0)
        _, at = _varint(footer, at)
        offset, at = _varint(footer, at)
        size, at = _varint(footer, at)
        shards, found = 1, {}
        for _, handle in _block(data, offset, size):
            place, next_at = _varint(handle, 0)
            length, _ = _varint(handle, next_at)
            for name, value in _block(data, place, length):
                if name:
                    found[name] = _entry(value)
                else:
                    shards = next(
                        (int(number) for field, number in _fields(value) if field == 1 and isinstance(number, int)), 1
                    )
                if len(found) > MOST_ENTRIES:
                    raise TableError("too many entries")
    except (IndexError, struct.error) as error:
        raise TableError("the table is cut short or damaged") from error
    return shards, found


def _block(data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The entries of one block; a name is given as what it adds to the one before."""
    if offset + size + 5 > len(data):
        raise TableError("a block lies outside of the file")
    if data[offset + size] != 0:
        raise TableError("a block is compressed, which TensorFlow does not do")
    block = data[offset : offset + size]
    stop = len(block) - 4 - 4 * struct.unpack_from("<I", block, len(block) - 4)[0]
    at, name = 0, b""
    while at < stop:
        shared, at = _varint(block, at)
        own, at = _varint(block, at)
        length, at = _varint(block, at)
        if shared > len(name) or at + own + length > stop:
            raise TableError("an entry lies outside of its block")
        name = name[:shared] + block[at : at + own]
        yield name, block[at + own : at + own + length]
        at += own + length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise TableError("a number is too long")


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protocol buffer, by number."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            yield tag >> 3, message[at : at + size]
            at += size
        elif kind == 2:
            length, at = _varint(message, at)
            yield tag >> 3, message[at : at + length]
            at += length
        else:
            raise TableError("an entry is damaged")


def _entry(message: bytes) -> Entry:
    numbers = {1: 0, 3: 0, 4: 0, 5: 0}
    shape: list[int] = []
    for field, value in _fields(message):
        if isinstance(value, int) and field in numbers:
            numbers[field] = value
        elif field == 2 and isinstance(value, bytes):
            for inner, side in _fields(value):
                if inner == 2 and isinstance(side, bytes):
                    shape.append(next((one for name, one in _fields(side) if name == 1 and isinstance(one, int)), 0))
    return Entry(numbers[1], tuple(shape), numbers[3], numbers[4], numbers[5])
