"""Fingerprints of tensors: quick enough to be taken of every collective, and sure to see a single changed bit.

The bytes are read as 64-bit words, in rows of up to 2,048. Each row is multiplied by odd random numbers and summed modulo 2^64,
then the rows by others. An odd factor has an inverse, so one changed word always changes the sum; several changes cancel
with a probability of about 2^-64. Up to eighteen partial sums tell in which part of a large tensor the difference is.
Python's own hash() is salted and would differ between processes.
"""

from __future__ import annotations

import ctypes
from typing import Any

NAME = "words64"
PARTS = 16
_ROW = 2048
_MASK = (1 << 64) - 1
_SMALL = 4096  # bytes; below, the parts are not worth their place in the log

_weights: dict[str, Any] = {}


def _factors(kind: str, count: int) -> Any:
    """At least `count` odd numbers, the same in every process and release."""
    import numpy

    have = _weights.get(kind)
    if have is None or len(have) < count:
        seed = {"row": 0x9E3779B97F4A7C15, "rows": 0xC2B2AE3D27D4EB4F}[kind]
        # splitmix64, so that the numbers depend on no library's generator
        size = max(count, 2 * len(have) if have is not None else _ROW)
        with numpy.errstate(over="ignore"):
            state = numpy.arange(1, size + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15) + numpy.uint64(
                seed
            )
            state = (state ^ (state >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
            have = ((state ^ (state >> numpy.uint64(31))) | numpy.uint64(1)).view(numpy.int64)
        _weights[kind] = have
    return have[:count]


class Bytes:
    """The bytes of a tensor without a copy where it lies in memory as it should; holds the tensor as long as it lives."""

    __slots__ = ("_held", "array", "is_view")

    def __init__(self, tensor: Any) -> None:
        import numpy

        self._held: Any
        if isinstance(tensor, numpy.ndarray):
            self._held = numpy.ascontiguousarray(tensor)
            self.is_view = self._held is tensor
            self.array = self._held.reshape(-1).view(numpy.uint8)
            return
        held = tensor.detach()
        self.is_view = True
        if held.device.type != "cpu" or not held.is_contiguous():
            self.is_view = False
            held = held.cpu().contiguous()
        if held.is_conj() or held.is_neg():
            self.is_view = False
            held = held.resolve_conj().resolve_neg()
        self._held = held
        size = held.numel() * held.element_size()
        if size:
            memory = (ctypes.c_uint8 * size).from_address(held.data_ptr())
            self.array = numpy.frombuffer(memory, numpy.uint8)
        else:
            self.array = numpy.empty(0, numpy.uint8)


def width_of(tensor: Any) -> int:
    """Bytes of one element, of PyTorch's tensors and NumPy's arrays."""
    return int(tensor.element_size() if hasattr(tensor, "element_size") else tensor.itemsize)


def size_of(tensor: Any) -> int:
    """Bytes of all elements."""
    return int(tensor.numel() if hasattr(tensor, "numel") else tensor.size) * width_of(tensor)


def fingerprint(data: Any) -> tuple[int, list[int]]:
    """Of an array of bytes: the whole, and its parts (none where it is small)."""
    import numpy

    size = len(data)
    words = size // 8
    array = data[: words * 8].view(numpy.int64)
    row = _row(words)
    rows = words // row
    factors = _factors("row", row)
    sums: Any = numpy.zeros(rows + 2, numpy.int64)
    if rows:
        numpy.dot(array[: rows * row].reshape(rows, row), factors, out=sums[:rows])
    left = words - rows * row
    if left:
        sums[rows] = numpy.dot(array[rows * row :], factors[:left])
    sums[rows + 1] = int.from_bytes(bytes(data[words * 8 :]), "little")
    sums *= _factors("rows", rows + 2)
    whole = (int(sums.sum()) ^ size * 0x9E3779B97F4A7C15) & _MASK
    if size < _SMALL:
        return whole, []
    step = part_size(size) // (row * 8)
    return whole, [int(part) & _MASK for part in numpy.add.reduceat(sums, range(0, rows + 2, step))]


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
        whole, pieces = fingerprint(Bytes(tensor).array)
        wholes.append(f"{whole:016x}")
        parts.append("".join(f"{piece:016x}" for piece in pieces))
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
