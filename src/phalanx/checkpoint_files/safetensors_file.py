"""One safetensors file: eight bytes of length, a JSON header with the place of each tensor, and the numbers."""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

from phalanx.checkpoint_files.dtypes import SAFETENSORS, bytes_of
from phalanx.checkpoint_files.inventory import kind_and_name
from phalanx.checkpoint_files.model import NOT_THERE, Checkpoint, Kind, Part, Span, Tensor, Trouble
from phalanx.checkpoint_files.reading import read_bytes, size_of
from phalanx.checkpoint_files.taking import shown_in

LARGEST_HEADER = 100_000_000  # as the library itself has it


def is_safetensors(path: Path) -> bool:
    """Whether a file begins with a header's length and a JSON object."""
    if size_of(path) < 10:
        return False
    head = read_bytes(path, 0, 9)
    return head[8:9] == b"{" and struct.unpack("<Q", head[:8])[0] <= LARGEST_HEADER


def take_safetensors(found: Checkpoint, path: Path, rank: int | None = None) -> Part | None:
    """Add a file to a checkpoint, with what is wrong with it."""
    shown, size = shown_in(found, path), size_of(path)
    if size < 0:
        found.trouble(Trouble.MISSING, shown, NOT_THERE if not path.exists() else "it is no regular file", rank)
        return None
    part = Part(shown, rank, size)
    found.parts.append(part)
    if size < 8:
        found.trouble(Trouble.TRUNCATED, shown, "it is empty" if not size else "it ends within its first 8 bytes", rank)
        return part
    length = struct.unpack("<Q", read_bytes(path, 0, 8))[0]
    if length > LARGEST_HEADER:
        found.trouble(Trouble.CORRUPT, shown, f"its header claims {length:,} bytes: not a safetensors file", rank)
        return part
    if 8 + length > size:
        found.trouble(Trouble.TRUNCATED, shown, f"its header ends at byte {8 + length:,}, the file at {size:,}", rank)
        return part
    try:
        header = json.loads(read_bytes(path, 8, length))
    except (ValueError, RecursionError) as error:
        found.trouble(Trouble.CORRUPT, shown, f"its header is no JSON ({str(error)[:60]})", rank)
        return part
    if not isinstance(header, dict):
        found.trouble(Trouble.CORRUPT, shown, "its header is no object", rank)
        return part
    _take_header(found, path, part, header, 8 + length)
    if any(tensor.kind is Kind.MODEL for tensor in part.tensors):
        part.states["model"] = "parameters"
    return part


def _take_header(found: Checkpoint, path: Path, part: Part, header: dict[str, Any], begin: int) -> None:
    data, places = part.bytes - begin, []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype = SAFETENSORS.get(entry["dtype"], str(entry["dtype"])[:20])
            shape = tuple(int(side) for side in entry["shape"])
            start, stop = (int(one) for one in entry["data_offsets"])
        except (KeyError, TypeError, ValueError):
            found.trouble(Trouble.CORRUPT, part.file, f"the header's entry of {name[:80]} is damaged", part.rank)
            continue
        places.append((start, stop, name))
        expected = bytes_of(dtype, shape)
        if stop < start or start < 0 or (expected is not None and stop - start != expected):
            detail = f"{name[:80]} of shape {list(shape)} and {dtype} has {stop - start:,} bytes"
            found.trouble(Trouble.CORRUPT, part.file, detail, part.rank)
            continue
        whole = stop <= data
        span = Span(path, begin + start, stop - start) if whole else None
        kind = kind_and_name((name,))[0]
        part.tensors.append(Tensor(name, dtype, shape, kind, span, 0, stop - start))
    places.sort()
    last = places[-1][1] if places else 0
    if last > data:
        detail = f"its tensors end at byte {begin + last:,}, the file at {part.bytes:,}"
        found.trouble(Trouble.TRUNCATED, part.file, detail, part.rank)
    elif last < data:
        found.trouble(Trouble.CORRUPT, part.file, f"{data - last:,} bytes behind the last tensor", part.rank)
    for (_, stop, first), (start, _, second) in pairwise(places):
        if start < stop:
            found.trouble(Trouble.CORRUPT, part.file, f"{first[:80]} and {second[:80]} overlap", part.rank)
            break
