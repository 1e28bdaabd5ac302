"""Writes flight-recorder dumps byte for byte as PyTorch 2.13 does, fast enough for 10,000 ranks.

PyTorch's pickler gives every string and every frame one number at its first use and refers to the number afterwards;
integers take the shortest form that holds them. An analyzer that is quick on Python's own pickles only would look better
here than it is, so the form is kept.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy

TIME_BYTES = 8
_LONG = b"\x8a\x08"


@dataclass
class Memo:
    """The numbers of strings and frames that were written before."""

    numbers: dict[object, int] = field(default_factory=dict)
    used: int = 0

    def copy(self) -> Memo:
        return Memo(dict(self.numbers), self.used)

    def put(self, key: object) -> bytes:
        number = self.numbers[key] = self.used
        self.used += 1
        return b"q" + bytes([number]) if number < 256 else b"r" + struct.pack("<I", number)

    def get(self, key: object) -> bytes | None:
        number = self.numbers.get(key)
        if number is None:
            return None
        return b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)


class Now:
    """Stands for a time that is filled in for each rank."""


NOW = Now()


def encode(value: object, memo: Memo) -> bytes:
    """One value in PyTorch's form."""
    if value is None:
        return b"N"
    if value is True:
        return b"\x88"
    if value is False:
        return b"\x89"
    if isinstance(value, Now):
        return _LONG + b"\0" * TIME_BYTES
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        return _string(value, memo)
    if isinstance(value, tuple):
        return b"".join(encode(one, memo) for one in value) + b"\x86"
    if isinstance(value, list):
        return b"](" + b"".join(encode(one, memo) for one in value) + b"e"
    if isinstance(value, Frame):
        return _frame(value, memo)
    if isinstance(value, dict):
        return b"}(" + b"".join(encode(k, memo) + encode(v, memo) for k, v in value.items()) + b"u"
    raise TypeError(f"no form for {type(value)}")


@dataclass(frozen=True)
class Frame:
    """A line of a stack; written once, referred to afterwards."""

    name: str
    filename: str
    line: int


def _frame(frame: Frame, memo: Memo) -> bytes:
    if (known := memo.get(frame)) is not None:
        return known
    return encode({"name": frame.name, "filename": frame.filename, "line": frame.line}, memo) + memo.put(frame)


def _string(text: str, memo: Memo) -> bytes:
    if (known := memo.get(text)) is not None:
        return known
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data + memo.put(text)


def _integer(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if 0 <= value < 65536:
        return b"M" + struct.pack("<H", value)
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    return _LONG + struct.pack("<q", value)


@dataclass(frozen=True)
class Body:
    """The entries of one kind of rank as bytes, and where its times stand in them."""

    data: numpy.ndarray
    places: numpy.ndarray  # offset of each time's first byte, in the order of writing

    def with_times(self, times: numpy.ndarray) -> bytes:
        """The bytes with these times (as many as there are places) filled in."""
        out = self.data.copy()
        out[self.places[:, None] + numpy.arange(TIME_BYTES)] = times.astype("<i8").view(numpy.uint8).reshape(-1, 8)
        return out.tobytes()


def body_of(entries: list[bytes], fields: list[tuple[int, ...]]) -> Body:
    """Joins encoded entries; `fields` tells where in each of them times stand."""
    starts = numpy.cumsum([0] + [len(entry) for entry in entries[:-1]])
    places = [start + offset for start, offsets in zip(starts.tolist(), fields, strict=True) for offset in offsets]
    return Body(numpy.frombuffer(b"".join(entries), dtype=numpy.uint8), numpy.array(places, dtype=numpy.int64))


def places_of_times(entry: bytes) -> tuple[int, ...]:
    """Where the times to fill in stand in one encoded entry."""
    wanted = _LONG + b"\0" * TIME_BYTES
    found: list[int] = []
    at = entry.find(wanted)
    while at >= 0:
        found.append(at + len(_LONG))
        at = entry.find(wanted, at + len(wanted))
    return tuple(found)
