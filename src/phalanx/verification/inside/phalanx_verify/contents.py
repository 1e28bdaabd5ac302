"""What a dataset holds, in 64 numbers: enough to tell whether two ranks hold the same samples, some of them, or none."""

from __future__ import annotations

import zlib
from typing import Any

from .marks import _rows

_KEPT = 64
_MOST_ROWS = 20_000
_MOST_BYTES = 64 << 20


def contents(dataset: Any) -> list[int] | None:
    """The smallest fingerprints of its rows, whatever their order; None where rows cannot be had without asking the dataset."""
    rows = _held(dataset, 0)
    if rows is None:
        return None
    found = sorted({zlib.crc32(row) for row in rows})
    return found[:_KEPT] if 2 * len(found) > len(rows) else None


def _held(dataset: Any, depth: int) -> list[bytes] | None:
    """The rows of the largest thing that it holds one of for each sample."""
    if depth > 3:
        return None
    indices = getattr(dataset, "indices", None)
    if indices is not None and hasattr(dataset, "dataset"):
        inner = _held(dataset.dataset, depth + 1)
        try:
            return [inner[int(one)] for one in indices] if inner is not None else None
        except (IndexError, TypeError, ValueError):
            return None
    if isinstance(dataset, (list, tuple)):
        return _of_list(dataset)
    try:
        length = len(dataset)
    except (TypeError, NotImplementedError):
        return None
    own = getattr(dataset, "__dict__", {})
    parts = [*own.get("tensors", ()), *own.values()] if isinstance(own.get("tensors"), tuple) else list(own.values())
    fitting = [one for one in parts if hasattr(one, "__len__") and _length(one) == length]
    rows = [found for one in fitting if (found := _of(one)) is not None]
    return max(rows, key=lambda found: len(found[0]) if found else 0, default=None)


def _length(value: Any) -> int:
    try:
        return len(value)
    except TypeError:  # a tensor of no dimension
        return -1


def _of(value: Any) -> list[bytes] | None:
    if hasattr(value, "data_ptr"):
        small = len(value) <= _MOST_ROWS and value.numel() * value.element_size() <= _MOST_BYTES
        return [bytes(row) for row in _rows(value)] if small else None
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        small = len(value) <= _MOST_ROWS and value.nbytes <= _MOST_BYTES and value.dtype != object
        return [row.tobytes() for row in value] if small else None
    return _of_list(value) if isinstance(value, (list, tuple)) else None


def _of_list(values: Any) -> list[bytes] | None:
    """Of numbers, texts, and small groups of numbers, texts and tensors."""
    from .marks import mark_of

    if len(values) > _MOST_ROWS or not values:
        return None
    if all(isinstance(one, (int, float, str)) for one in values):
        return [repr(one).encode() for one in values]
    return [mark_of(one).to_bytes(4, "little") for one in values]
