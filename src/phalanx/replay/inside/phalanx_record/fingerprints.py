"""Fingerprints of tensors: quick enough to be taken of every collective, and sure to see a single changed bit.

The bytes are read as 64-bit words, in rows of up to 2,048. The halves of each word are multiplied by an odd random number of
32 bits and summed, each half for itself, modulo 2^64: no product loses a bit, so one changed bit always changes a sum, and
whatever else changes goes unseen with a probability of 2^-31 at most. A row's two sums and its number are then mixed, and the
rows added up; up to eighteen partial sums tell in which part of a large tensor a difference is. Python's own hash() is salted
and would differ between processes; sums of words times words lose the highest bits, among them the signs of numbers.

NumPy computes it at about half the speed of memory; `words.c` computes the same numbers several times as fast, where
the host of the job has a compiler.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import Any

NAME = "halves32"
PARTS = 16
_ROW = 2048
_MASK = (1 << 64) - 1
_PAIR = struct.Struct("=2Q")
_GOLDEN = 0x9E3779B97F4A7C15
_SMALL = 4096  # bytes; below, the parts are not worth their place in the log
_BLOCK = 16  # rows that NumPy takes at a time, so that what it puts aside stays in the processor's cache

Look = tuple[int, int]  # how numbers that are not finite look: the exponents' bits in a word, and the bytes of a number
UNSEEN: Look = (0, 0)
Told = ctypes.c_uint64 * 2  # the first fingerprint of a line, and whether a number is not finite
_LOOKS: dict[str, Look] = {
    "torch.float32": (0x7F800000_7F800000, 4),
    "torch.float64": (0x7FF00000_00000000, 8),
    "torch.float16": (0x7C007C00_7C007C00, 2),
    "torch.bfloat16": (0x7F807F80_7F807F80, 2),
}

_looks: dict[Any, Look] = {}
_tables: dict[str, Any] = {}
_native: list[Any] = []  # the compiled functions: of memory, of a line, of a copy
_ROOM = 16 * (PARTS + 2) + 1  # bytes of the parts' digits, and a zero


def use(library: str) -> bool:
    """Have fingerprints computed by the compiled library; False, and NumPy goes on, where it does not do what it should."""
    import numpy

    if sys.byteorder != "little":
        return False
    try:
        found = ctypes.CDLL(library)
        found.phalanx_words.restype = ctypes.c_uint64
        found.phalanx_words.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p]
        found.phalanx_line.restype = ctypes.c_long
        found.phalanx_line.argtypes = [
            ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
            ctypes.c_uint64, ctypes.c_int,
        ]  # fmt: skip
        found.phalanx_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        found.phalanx_copy.restype = None
        found.phalanx_begin.argtypes = [ctypes.c_void_p]
        found.phalanx_begin.restype = None
        found.phalanx_begin(_factors().ctypes.data)
    except (OSError, AttributeError):
        return False
    sample = numpy.arange(5003, dtype=numpy.uint32).view(numpy.uint8)[:20_003]
    expected = fingerprint(sample)
    _native[:] = [found.phalanx_words, found.phalanx_line, found.phalanx_copy]
    if fingerprint(sample) != expected:
        _native.clear()
    return bool(_native)


def addresses() -> tuple[int | None, int | None]:
    """Where the compiled functions of a line and of a copy lie, for code that is compiled too."""
    line, copy = (ctypes.cast(one, ctypes.c_void_p).value for one in _native[1:])
    return line, copy


def fingerprint(data: Any) -> tuple[int, list[int]]:
    """Of an array of bytes: the whole, and its parts (none where it is small)."""
    whole, pieces = of_memory(data.ctypes.data, len(data))
    return whole, [int.from_bytes(bytes.fromhex(pieces[at : at + 16]), "little") for at in range(0, len(pieces), 16)]


def of_memory(address: int, size: int, wants_parts: bool = True, copy: int = 0) -> tuple[int, str]:
    """Of so many bytes in memory; the parts as hexadecimal digits. With `copy` they are copied to that address too."""
    wants_parts = wants_parts and size >= _SMALL
    if not _native:
        return _by_numpy(address, size, wants_parts, copy)
    if not wants_parts:
        return _native[0](address, size, copy, None), ""
    room = ctypes.create_string_buffer(_ROOM)  # not shared: several threads take fingerprints
    whole = _native[0](address, size, copy, room)
    return whole, room.value.decode()


def append_line(
    log: int, prefix: str, held: list[Any], wants_parts: bool, copy: int = 0, told: Any = None, look: Look = UNSEEN
) -> int:
    """Append a line to a log: the inside of a JSON object up to an opened list, into which the fingerprints go.

    Of everything that has address and size; `told` gets the first, and whether a number is not finite where it is said
    how these `look`. Returns how many bytes were written. In C all at once: between two collectives the processor's caches are full of other things, and there every step of Python's
    takes several times as long as when it is tried alone.
    """
    if not _native:
        text = listed(held, wants_parts, copy)
        if told is not None:
            told[0] = int(text[1:17], 16) if held else 0
            told[1] = any(_is_odd(one.address, one.size, look) for one in held)
        return write_all(log, f"{{{prefix}{text}}}\n".encode())
    data = prefix.encode()
    if len(held) == 1:
        memory = _PAIR.pack(held[0].address, held[0].size)
    else:
        memory = b"".join([_PAIR.pack(one.address, one.size) for one in held])
    written = int(_native[1](log, data, len(data), memory, len(held), wants_parts, copy, told, *look))
    if written < 0:
        raise OSError(-written, os.strerror(-written))
    return written


def copy_memory(to: int, address: int, size: int) -> None:
    """So many bytes, past the processor's cache where there are many: it is the job's."""
    (_native[2] if _native else ctypes.memmove)(to, address, size)


def listed(held: list[Any], wants_parts: bool = True, copy: int = 0) -> str:
    """The rest of such a line."""
    wholes, parts = [], []
    for one in held:
        whole, pieces = of_memory(one.address, one.size, wants_parts, copy)
        copy += one.size if copy else 0
        wholes.append(f'"{whole:016x}"')
        parts.append(f'"{pieces}"')
    text = ",".join(wholes) + "]"
    return f'{text},"parts":[{",".join(parts)}]' if any(len(one) > 2 for one in parts) else text


def look_of(dtype: Any) -> Look:
    """How numbers of this type look that are not finite; nobody looks at others."""
    known = _looks.get(dtype)
    if known is None:
        known = _looks[dtype] = _LOOKS.get(str(dtype), UNSEEN)
    return known


def write_all(descriptor: int, data: Any) -> int:
    """All of it, whatever the kernel takes at a time; how many bytes."""
    passed = os.write(descriptor, data)
    if passed == len(data):
        return passed
    left = memoryview(data).cast("B")[passed:]
    while left:
        left = left[os.write(descriptor, left) :]
    return len(data)


def _is_odd(address: int, size: int, look: Look) -> bool:
    exponents, width = look
    if not width:
        return False
    data = _as_bytes(address, size)[: size // width * width].view(f"u{width}")
    exponent = data.dtype.type(exponents & (1 << 8 * width) - 1)
    return bool(((data & exponent) == exponent).any())


def _as_bytes(address: int, size: int) -> Any:
    import numpy

    memory = (ctypes.c_uint8 * max(size, 1)).from_address(address or ctypes.addressof(ctypes.c_uint8()))
    return numpy.frombuffer(memory, numpy.uint8, size)


def _by_numpy(address: int, size: int, wants_parts: bool, copy: int) -> tuple[int, str]:
    import numpy

    if copy:
        ctypes.memmove(copy, address, size)
    data = _as_bytes(address, size)
    words = size // 8
    row = _row(words)
    rows, step = words // row, part_size(size) // (row * 8)
    array = data[: words * 8].view(numpy.uint64)
    factors = _factors64()[:row]
    sums: Any = numpy.zeros((2, rows + 2), numpy.uint64)  # of whole words modulo 2^64, and of their upper halves
    if rows:
        matrix = array[: rows * row].reshape(rows, row)
        for at in range(0, rows, _BLOCK):
            block = matrix[at : at + _BLOCK]
            numpy.einsum("ij,j->i", block, factors, out=sums[0, at : at + len(block)])
            numpy.einsum("ij,j->i", block >> numpy.uint64(32), factors, out=sums[1, at : at + len(block)])
    left = array[rows * row :]
    if len(left):
        sums[0, rows] = numpy.dot(left, factors[: len(left)])
        sums[1, rows] = numpy.dot(left >> numpy.uint64(32), factors[: len(left)])
    sums[0, rows + 1] = int.from_bytes(bytes(data[words * 8 :]), "little")
    places = numpy.arange(1, 2 * rows + 4, 2, dtype=numpy.uint64) * numpy.uint64(_GOLDEN)
    mixed = _mix(_mix(sums[0] + places) + sums[1])
    total = numpy.array([(int(mixed.sum()) + size * _GOLDEN) & _MASK], numpy.uint64)
    whole = int(_mix(total)[0])
    if not wants_parts:
        return whole, ""
    return whole, numpy.add.reduceat(mixed, range(0, rows + 2, step)).astype("<u8").tobytes().hex()


def _mix(state: Any) -> Any:
    """splitmix64's: every bit of the result depends on every bit given."""
    import numpy

    state = (state ^ (state >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return state ^ (state >> numpy.uint64(31))


def _factors() -> Any:
    """Odd numbers, the same in every process and release: they depend on no library's generator."""
    import numpy

    if "32" not in _tables:
        state = numpy.arange(1, _ROW + 1, dtype=numpy.uint64) * numpy.uint64(_GOLDEN)
        _tables["32"] = ((_mix(state) >> numpy.uint64(32)) | numpy.uint64(1)).astype(numpy.uint32)
    return _tables["32"]


def _factors64() -> Any:
    import numpy

    if "64" not in _tables:
        _tables["64"] = _factors().astype(numpy.uint64)
    return _tables["64"]


def _row(words: int) -> int:
    """Words in a row: shorter ones for small tensors, so that these have parts too."""
    return _ROW if words >= PARTS * _ROW else max(8, -(-words // PARTS))


def part_size(size: int) -> int:
    """How many bytes one part of a tensor of so many bytes stands for."""
    words = size // 8
    row = _row(words)
    return -(-(words // row + 2) // (PARTS + 2)) * row * 8


def different_ranges(size: int, one: str, other: str) -> list[tuple[int, int]]:
    """The ranges of bytes in which two tensors of the same size differ, by their parts; the whole where there are none."""
    if not one or len(one) != len(other):
        return [(0, size)]
    step = part_size(size)
    found: list[tuple[int, int]] = []
    for number in range(len(one) // 16):
        place = slice(number * 16, number * 16 + 16)
        if one[place] != other[place]:
            begin, end = number * step, min((number + 1) * step, size)
            if begin >= end:  # the last sum stands for the bytes behind the last whole word
                begin, end = max(size - 8, 0), size
            if found and found[-1][1] == begin:
                begin = found.pop()[0]
            found.append((begin, end))
    return found or [(0, size)]
