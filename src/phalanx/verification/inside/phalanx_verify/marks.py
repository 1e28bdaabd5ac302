"""Fingerprints of data: of a batch as a whole, and of its rows, so that the same sample is known again on another rank."""

from __future__ import annotations

import zlib
from typing import Any

_MOST_BYTES = 1 << 20  # of a tensor; of a larger one its beginning
_MOST_ROWS = 256
_MOST_OF_ROW = 16 << 10  # bytes


def mark_of(value: Any) -> int:
    """One number for all tensors, numbers and texts in a batch, however they are packed."""
    total = 0
    for leaf in leaves(value):
        total = zlib.crc32(_bytes(leaf), total)
    return total


def rows_of(value: Any) -> list[int]:
    """One number for each sample of a batch: all tensors of the same length are taken together."""
    tensors = [leaf for leaf in leaves(value) if hasattr(leaf, "data_ptr") and leaf.dim() > 0]
    count = int(tensors[0].shape[0]) if tensors else 0
    found = [0] * min(count, _MOST_ROWS)
    for leaf in tensors:
        if leaf.shape[0] == count and found:
            rows = _rows(leaf[: len(found)])
            found = [zlib.crc32(row, before) for row, before in zip(rows, found)]
    return found


def _rows(tensor: Any) -> Any:
    """The beginning of each row as bytes; by NumPy, since PyTorch takes microseconds to say what a row is."""
    import torch

    if tensor.layout is not torch.strided or tensor.is_meta:
        return [b""] * len(tensor)
    flat = tensor.detach().reshape(len(tensor), -1)[:, : max(1, _MOST_OF_ROW // tensor.element_size())]
    if not flat.numel():
        return [b""] * len(tensor)
    return flat.cpu().contiguous().view(torch.uint8).numpy()


def leaves(value: Any) -> list[Any]:
    """All that is packed in dictionaries, lists and tuples, in order."""
    if isinstance(value, dict) or hasattr(value, "keys"):
        return [leaf for key in value.keys() for leaf in leaves(value[key])]  # noqa: SIM118 (not all are dictionaries)
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def _bytes(leaf: Any) -> bytes:
    if not hasattr(leaf, "data_ptr"):
        return repr(leaf).encode() if isinstance(leaf, (int, float, str, bytes, bool)) else b""
    import torch

    if leaf.layout is not torch.strided or leaf.is_meta:
        return b""
    flat = leaf.detach().reshape(-1)[: _MOST_BYTES // max(1, leaf.element_size())].cpu().contiguous()
    return bytes(flat.view(torch.uint8).numpy().data) if flat.numel() else b""
