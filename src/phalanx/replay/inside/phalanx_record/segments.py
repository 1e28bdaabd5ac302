"""The memory of a ring: a file without a name that outlives its rank, because whoever started the rank holds it too.

A rank that is killed cannot write what it held; its supervisor reads it here. The file has two segments, each a stretch of
steps: a snapshot of the state first, then results, one behind the other. A record's header is written after all of it, and
has the number of its stretch: where that is another one, what follows is old, or was being written when the rank died.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

SNAPSHOT, RESULT, _GAP = 1, 2, 3
SEGMENTS = 2  # the older stretch is whole when the newer one is begun over what was before it
_STRIDE = 1 << 40  # where each begins; nothing is there until it is written
_HEADER = struct.Struct("<QIIQ8x")  # stretch, kind, bytes of text, bytes of data
_ALIGNED = 64
_LEAST = 4 << 20
_encode = json.JSONEncoder(separators=(",", ":")).encode  # kept: making one costs more than what it does here


def make_room() -> int:
    """A descriptor of a file in memory, as large as need be. Raises OSError."""
    if hasattr(os, "memfd_create"):
        room = os.memfd_create("phalanx-ring")
    else:
        with tempfile.TemporaryFile() as file:
            room = os.dup(file.fileno())
    os.ftruncate(room, SEGMENTS * _STRIDE)
    return room


def is_room(descriptor: int) -> bool:
    """Whether it is one: a number may stand for another file by now."""
    try:
        return descriptor >= 0 and os.fstat(descriptor).st_size == SEGMENTS * _STRIDE
    except OSError:
        return False


class Cursor(ctypes.Structure):
    """Where the next record of a segment goes: `base + at`, up to `end`. The compiled kernel writes records too."""

    _fields_ = [(name, ctypes.c_int64) for name in ("stretch", "base", "at", "end")]


class Space(NamedTuple):
    """Room for one record's data, and what makes it valid."""

    address: int
    header_at: int
    header: bytes

    def commit(self) -> None:
        """All data is there."""
        ctypes.memmove(self.header_at, self.header, len(self.header))


class Segment:
    """One stretch, being written by its rank. Its memory is kept from stretch to stretch: taking it anew costs more than a copy."""

    def __init__(self, room: int, index: int) -> None:
        self._room, self._base = room, index * _STRIDE
        self._chunks: list[tuple[int, int, int, mmap.mmap]] = []  # begin, end, address, its memory
        self._chunk = 0
        self.cursor = Cursor()

    @property
    def bytes_held(self) -> int:
        """Of its records so far."""
        return int(self.cursor.at)

    def begin(self, stretch: int) -> None:
        """Forget what it holds."""
        self._chunk = 0
        self.cursor.stretch, self.cursor.at, self.cursor.end = stretch, 0, 0
        if self._chunks:
            self._enter_chunk()
            ctypes.memset(self._chunks[0][2], 0, _HEADER.size)

    def reserve(self, kind: int, facts: dict[str, Any], size: int) -> Space:
        """Room for so many bytes. Raises OSError where there is no memory."""
        text = _encode(facts).encode()
        before = _aligned(_HEADER.size + len(text))
        need = before + _aligned(size)
        address = self.find(need)
        ctypes.memmove(address + _HEADER.size, text, len(text))
        self.cursor.at += need
        return Space(address + before, address, _HEADER.pack(self.cursor.stretch, kind, len(text), size))

    def find(self, need: int) -> int:
        """Where so many bytes fit; the cursor stands there then."""
        cursor = self.cursor
        while True:
            if self._chunk == len(self._chunks):
                self._grow(need)
            self._enter_chunk()
            address = int(cursor.base + cursor.at)
            if cursor.at + need + _ALIGNED <= cursor.end:
                return address
            header = _HEADER.pack(cursor.stretch, _GAP, 0, cursor.end - cursor.at - _ALIGNED)
            ctypes.memmove(address, header, len(header))
            cursor.at = cursor.end
            self._chunk += 1

    def _enter_chunk(self) -> None:
        begin, end, address, _ = self._chunks[self._chunk]
        self.cursor.base, self.cursor.end = address - begin, end

    def _grow(self, need: int) -> None:
        begin = self._chunks[-1][1] if self._chunks else 0
        size = max(_LEAST, begin)  # twice as much as there is
        while size < need + _ALIGNED:
            size *= 2
        _check_memory(size)
        memory = mmap.mmap(self._room, size, offset=self._base + begin)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self._chunks.append((begin, begin + size, address, memory))

    def release(self) -> None:
        """Give the memory back; what others may still write there does no harm."""
        for _, _, _, memory in self._chunks:
            if hasattr(mmap, "MADV_REMOVE"):
                with contextlib.suppress(OSError):
                    memory.madvise(mmap.MADV_REMOVE)


def _check_memory(size: int) -> None:
    """Raise OSError where so many bytes would be more than half of a rank's part of what is free: the rest is the job's."""
    free = _free_memory()
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    if free is not None and size > free // 2 // max(int(ranks) if ranks.isdigit() else 1, 1):
        raise OSError(errno.ENOMEM, f"the ring wants {size >> 20} MiB more, and {free >> 20} MiB of memory are free")


def _free_memory() -> int | None:
    """Bytes that are free on this host, and to this container; None where nobody says."""
    found = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        found.append(_numbers("/proc/meminfo", "MemAvailable:") << 10)
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            own = next(line[3:].strip() for line in file if line.startswith("0::"))
        place = f"/sys/fs/cgroup{own}/memory"
        can_be_dropped = _numbers(f"{place}.stat", "inactive_file", "active_file")
        found.append(_numbers(f"{place}.max") - _numbers(f"{place}.current") + can_be_dropped)
    return max(min(found), 0) if found else None


def _numbers(path: str, *names: str) -> int:
    """The sum of these, of lines of names and numbers; or the only number in a file."""
    with open(path, encoding="ascii") as file:
        if not names:
            return int(file.read())
        return sum([int(words[1]) for words in map(str.split, file) if words[0] in names])


@dataclass(frozen=True)
class Held:
    """A record that was found."""

    kind: int
    facts: dict[str, Any]
    place: int
    size: int

    def data(self, room: int) -> bytes:
        """Its bytes."""
        found = bytearray()
        while len(found) < self.size:
            piece = os.pread(room, min(self.size - len(found), 1 << 28), self.place + len(found))
            if not piece:
                raise OSError("the memory of the ring ends early")
            found += piece
        return bytes(found)


def held_in(room: int) -> list[list[Held]]:
    """The records of the stretches that are held, the older one first."""
    found = []
    for index in range(SEGMENTS):
        stretch = _HEADER.unpack(os.pread(room, _HEADER.size, index * _STRIDE))[0]
        if stretch:
            found.append((stretch, index))
    stretches = [list(_records(room, stretch, index * _STRIDE)) for stretch, index in sorted(found)]
    return [one for one in stretches if one]


def _records(room: int, stretch: int, place: int) -> Iterator[Held]:
    end = place + _STRIDE
    while place + _HEADER.size <= end:
        named, kind, length, size = _HEADER.unpack(os.pread(room, _HEADER.size, place))
        if named != stretch:
            return
        before = _aligned(_HEADER.size + length)
        if kind != _GAP:
            facts = json.loads(os.pread(room, length, place + _HEADER.size))
            yield Held(kind, facts, place + before, size)
        place += before + _aligned(size)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
