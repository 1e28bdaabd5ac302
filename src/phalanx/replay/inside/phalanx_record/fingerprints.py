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
import sys
from typing import Any

NAME = "halves32"
PARTS = 16
_ROW = 2048
_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_SMALL = 4096  # bytes; below, the parts are not worth their place in the log
_BLOCK = 16  # rows that NumPy takes at a time, so that what it puts aside stays in the processor's cache

_tables: dict[str, Any] = {}
_native: list[Any] = []  # the compiled function
_shapes: dict[int, tuple[int, int, int]] = {}  # by size: words in a row, rows in a part, parts
_ROOM = ctypes.c_uint64 * (PARTS + 2)


class Bytes:
    """The bytes of a tensor without a copy where it lies in memory as it should; holds the tensor as long as it lives."""

    __slots__ = ("_held", "address", "is_view", "size")

    def __init__(self, tensor: Any) -> None:
        if hasattr(tensor, "data_ptr"):
            held = tensor
            self.is_view = held.is_cpu and held.is_contiguous() and not held.is_conj() and not held.is_neg()
            if not self.is_view:
                held = held.detach().cpu().contiguous().resolve_conj().resolve_neg()
            self.address, self.size = held.data_ptr(), held.nbytes
        else:
            import numpy

            self.is_view = bool(tensor.flags.c_contiguous)
            held = tensor if self.is_view else numpy.ascontiguousarray(tensor)  # would copy a single number too
            self.address, self.size = held.ctypes.data, held.nbytes
        self._held: Any = held

    @property
    def array(self) -> Any:
        """As NumPy sees them."""
        import numpy

        if not self.size:
            return numpy.empty(0, numpy.uint8)
        return numpy.frombuffer((ctypes.c_uint8 * self.size).from_address(self.address), numpy.uint8)


def use(library: str) -> bool:
    """Have fingerprints computed by the compiled library; False, and NumPy goes on, where it does not do what it should."""
    import numpy

    if sys.byteorder != "little":
        return False
    try:
        found = ctypes.CDLL(library)
        found.phalanx_words.restype = ctypes.c_uint64
        found.phalanx_words.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 3, ctypes.c_void_p, ctypes.c_void_p]
        found.phalanx_begin.argtypes = [ctypes.c_void_p]
        found.phalanx_begin.restype = None
        found.phalanx_begin(_factors().ctypes.data)
    except (OSError, AttributeError):
        return False
    sample = numpy.arange(5003, dtype=numpy.uint32).view(numpy.uint8)[:20_003]
    expected = fingerprint(sample)
    _native[:] = [found.phalanx_words]
    if fingerprint(sample) != expected:
        _native.clear()
    return bool(_native)


def width_of(tensor: Any) -> int:
    """Bytes of one element, of PyTorch's tensors and NumPy's arrays."""
    return int(tensor.element_size() if hasattr(tensor, "element_size") else tensor.itemsize)


def size_of(tensor: Any) -> int:
    """Bytes of all elements."""
    return int(tensor.nbytes)


def fingerprint(data: Any) -> tuple[int, list[int]]:
    """Of an array of bytes: the whole, and its parts (none where it is small)."""
    whole, pieces = of_memory(data.ctypes.data, len(data))
    return whole, [int.from_bytes(bytes.fromhex(pieces[at : at + 16]), "little") for at in range(0, len(pieces), 16)]


def of_memory(address: int, size: int, wants_parts: bool = True, copy: int = 0) -> tuple[int, str]:
    """Of so many bytes in memory; the parts as hexadecimal digits. With `copy` they are copied to that address too."""
    shape = _shapes.get(size)
    if shape is None:
        if len(_shapes) > 1000:
            _shapes.clear()
        row = _row(size // 8)
        step = part_size(size) // (row * 8)
        shape = _shapes[size] = row, step, -(-(size // 8 // row + 2) // step)
    row, step, count = shape
    wants_parts = wants_parts and size >= _SMALL
    if not _native:
        return _by_numpy(address, size, row, step, wants_parts, copy)
    if not wants_parts:
        return _native[0](address, size, row, step, copy, 0), ""
    room = _ROOM()  # not shared: several threads take fingerprints
    whole = _native[0](address, size, row, step, copy, ctypes.addressof(room))
    return whole, bytes(room)[: count * 8].hex()


def _by_numpy(address: int, size: int, row: int, step: int, wants_parts: bool, copy: int) -> tuple[int, str]:
    import numpy

    if copy:
        ctypes.memmove(copy, address, size)
    memory = (ctypes.c_uint8 * max(size, 1)).from_address(address or ctypes.addressof(ctypes.c_uint8()))
    data = numpy.frombuffer(memory, numpy.uint8, size)
    words = size // 8
    rows = words // row
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


def of_tensors(tensors: list[Any]) -> tuple[list[str], list[str]]:
    """Of several tensors: the fingerprints, and for each its parts, as hexadecimal digits."""
    wholes, parts = [], []
    for tensor in tensors:
        held = Bytes(tensor)
        whole, pieces = of_memory(held.address, held.size)
        wholes.append(f"{whole:016x}")
        parts.append(pieces)
    return wholes, parts


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
