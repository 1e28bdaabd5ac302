"""The names of parameters in a tensor that is many of them in a row: DDP's buckets, FSDP's groups of shards."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from .calls import Call
from .places import name_at_call
from .training import Training

Ranges = list[tuple[int, int]]
_MOST = 8


def names_in(call: Call, tensor: Any, where: Ranges, training: Training) -> list[str]:
    """What lies in these ranges of elements; what the user calls the tensor where it is the user's own."""
    if not hasattr(tensor, "numel"):
        return []
    found = _in_buckets(tensor, where, training) or _in_shards(tensor, where)
    if not found:
        own = name_at_call(tensor)
        found = [own] if own else []
    return found[:_MOST]


def _in_buckets(tensor: Any, where: Ranges, training: Training) -> list[str]:
    for bucket in reversed(training.buckets):
        if sum(size for _, size in bucket) == tensor.numel():
            return _overlapping(bucket, where)
    return []


def _in_shards(tensor: Any, where: Ranges) -> list[str]:
    """FSDP2's functions have their parameters at hand."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        parameters = frame.f_locals.get("fsdp_params")
        if isinstance(parameters, list) and parameters:
            names = [str(getattr(one, "_param_fqn", None) or "?") for one in parameters]
            sizes = [int(getattr(one, "_sharded_param_data", tensor).numel()) for one in parameters]
            total = sum(sizes)
            if total == tensor.numel():
                return _overlapping(list(zip(names, sizes)), where)
            if (
                total and tensor.numel() % total == 0
            ):  # one after another for each member: the input of a reduce-scatter
                return sorted({name for low, high in where for name in _folded(names, sizes, low, high, total)})
            return names
        frame = frame.f_back
    return []


def _folded(names: list[str], sizes: list[int], low: int, high: int, total: int) -> list[str]:
    if high - low >= total:
        return names
    begin = low % total
    spans = [(begin, min(begin + high - low, total))]
    if begin + high - low > total:
        spans.append((0, begin + high - low - total))
    return _overlapping(list(zip(names, sizes)), spans)


def _overlapping(row: list[tuple[str, int]], where: Ranges) -> list[str]:
    found, passed = [], 0
    for name, size in row:
        if any(low < passed + size and high > passed for low, high in where):
            found.append(name)
        passed += size
    return found
