"""HDF5 files of weights: whether they are whole, by their own header, and their tensors, where h5py is installed."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from phalanx.checkpoint_files import hdf5_listing
from phalanx.checkpoint_files.model import Checkpoint, Kind, Part, Span, Tensor, Trouble
from phalanx.checkpoint_files.reading import read_bytes
from phalanx.model import Unchecked

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_OPTIMIZER = re.compile(r"^(?:optimizer|optimizer_weights)(?:/|$)|(?:^|/)optimizer/vars/")
_RANDOM = re.compile(r"seed_generator|random_seed")
_TIMEOUT = 90


def take_hdf5(found: Checkpoint, path: Path, shown: str, offset: int = 0, length: int | None = None) -> Part:
    """Add an HDF5 file, or one that lies within an archive, to a checkpoint."""
    size = path.stat().st_size - offset if length is None else length
    part = Part(shown, bytes=size)
    found.parts.append(part)
    if size == 0:
        found.trouble(Trouble.TRUNCATED, shown, "it is empty")
        return part
    head = read_bytes(path, offset, min(size, 64))
    if not head.startswith(SIGNATURE):
        found.trouble(Trouble.CORRUPT, shown, "it does not begin as an HDF5 file does")
        return part
    end = _end(head)
    if end is not None and end > size:
        found.trouble(Trouble.TRUNCATED, shown, f"its header says {end:,} bytes, it has {size:,}")
        return part
    listed = _listed(found, path, shown, offset, size)
    if listed is not None:
        _take(found, part, path, offset, listed)
    return part


def _end(head: bytes) -> int | None:
    """The file's size as its header has it."""
    places = {0: 40, 1: 44, 2: 28, 3: 28}
    place = places.get(head[8]) if len(head) > 8 else None
    if place is None or len(head) < place + 8 or head[13 if place in (40, 44) else 9] != 8:
        return None
    return int(struct.unpack_from("<Q", head, place)[0])


def _listed(found: Checkpoint, path: Path, shown: str, offset: int, length: int) -> dict[str, Any] | None:
    if find_spec("h5py") is None:
        found.unchecked.append(Unchecked(f"names and values in {shown}", "h5py: pip install h5py", essential=True))
        return None
    command = [sys.executable, "-m", hdf5_listing.__name__, str(path), str(offset), str(length)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, check=False, stdin=subprocess.DEVNULL)
        listed = json.loads(done.stdout) if done.returncode == 0 else None
    except (subprocess.TimeoutExpired, ValueError):
        found.trouble(Trouble.CORRUPT, shown, f"the HDF5 library does not get to its end within {_TIMEOUT} s")
        return None
    if not isinstance(listed, dict):
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"status {done.returncode}"]
        found.trouble(Trouble.CORRUPT, shown, f"the HDF5 library cannot read it ({words[0][:120]})")
        return None
    return listed


def _take(found: Checkpoint, part: Part, path: Path, offset: int, listed: dict[str, Any]) -> None:
    scattered = 0
    for name, dtype, shape, place, size in listed["datasets"]:
        kind = Kind.OPTIMIZER if _OPTIMIZER.search(name) else Kind.OTHER if _RANDOM.search(name) else Kind.MODEL
        whole = place is not None and place + size <= part.bytes
        span = Span(path, offset + place, size) if whole and size else None
        scattered += span is None and size > 0
        own = name.removeprefix("model_weights/")
        part.tensors.append(Tensor(own, dtype.lstrip("<|="), tuple(shape), kind, span, 0, size))
        part.states["optimizer" if kind is Kind.OPTIMIZER else "random" if kind is Kind.OTHER else "model"] = "there"
    if scattered:
        found.unchecked.append(
            Unchecked(f"values of {scattered} datasets in {part.file}", "datasets that are not in chunks")
        )
