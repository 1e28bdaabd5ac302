"""One file of torch.save, or one that lies within another file: its pickle as data, and where each storage's bytes are.

PyTorch 1.6 and later write a zip archive (`archive/data.pkl`, `archive/data/0`, …), older releases a row of pickles and
then the storages.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phalanx.checkpoint_files.dtypes import SIZES, STORAGES
from phalanx.checkpoint_files.model import CheckpointError, Span
from phalanx.checkpoint_files.pickled import Global, Node, Pickled, PickleError
from phalanx.checkpoint_files.pickles import read_pickle
from phalanx.checkpoint_files.reading import LARGEST_PICKLE, Window, open_regular, read_bytes, size_of
from phalanx.checkpoint_files.torch_tensors import Found, storage_key, walk

LEGACY = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # torch's magic number, pickled
ZIP = b"PK\x03\x04"
_LOCAL_HEADER = 30
_MOST_GROWTH = 4  # what an archive may unpack to, in its own size


@dataclass(slots=True)
class TorchFile:
    """What one file holds. `broken` says what is wrong with it, `truncated` that bytes are missing."""

    path: Path
    bytes: int
    tree: Any = None
    tensors: list[tuple[tuple[str, ...], Found]] = field(default_factory=list)
    storages: dict[str, Span] = field(default_factory=dict)
    globals: frozenset[Global] = frozenset()
    called: frozenset[Global] = frozenset()
    broken: str = ""
    truncated: bool = False
    unread: str = ""  # why values cannot be looked at


def is_torch_file(path: Path) -> bool:
    """Whether a file begins as torch.save writes it; an archive also has to hold a pickle."""
    try:
        head = read_bytes(path, 0, 64)
    except CheckpointError:
        return False
    if head.startswith((LEGACY, b"\x80\x02" + LEGACY)):
        return True
    # The first record of every release is the pickle, the format's number or the byte order.
    return head.startswith(ZIP) and any(
        word in head for word in (b"/data.pkl", b"/.format_version", b"/byteorder", b"/version")
    )


def read_torch(path: Path, offset: int = 0, length: int | None = None) -> TorchFile:
    """A file of torch.save, or a stretch of a file that is one. What is wrong with it is told, not raised."""
    size = size_of(path)
    if size < 0:
        raise CheckpointError(f"{path}: not a regular file, or it cannot be read")
    length = size - offset if length is None else length
    made = TorchFile(path, length)
    if offset + length > size:
        made.broken, made.truncated = f"it should have {offset + length:,} bytes and has {size:,}", True
        return made
    if not length:
        made.broken, made.truncated = "it is empty", True
        return made
    head = read_bytes(path, offset, min(16, length))
    if not head.strip(b"\0"):
        made.broken, made.truncated = "it begins with zeros: space was reserved and never written", True
    elif head.startswith(ZIP):
        _read_archive(made, offset, length)
    else:
        _read_pickles(made, offset, length)
    if made.tree is not None:
        made.tensors = list(walk(made.tree))
        _check_storages(made)
    return made


def _read_archive(made: TorchFile, offset: int, length: int) -> None:
    with open_regular(made.path) as file:
        try:
            archive = zipfile.ZipFile(Window(file, offset, length))
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
            made.broken = f"the archive's table of contents, which is written last, is missing ({str(error)[:60]})"
            made.truncated = True
            return
        members = archive.infolist()
        if sum(one.file_size for one in members) > _MOST_GROWTH * length + (1 << 20):
            made.broken = "its records claim more bytes than the file can hold (a zip bomb, or a damaged table)"
            return
        pickled = [one for one in members if one.filename.endswith("/data.pkl") or one.filename == "data.pkl"]
        if not pickled:
            made.broken = "it is a zip archive without data.pkl: not written by torch.save"
            return
        root = pickled[0].filename.removesuffix("data.pkl")
        for one in members:
            if one.filename.startswith(f"{root}data/"):
                if one.compress_type != zipfile.ZIP_STORED:
                    made.unread = "its records are compressed, which torch.save does not do"
                    continue
                start = _start_of(file, offset, one)
                if start is None or start + one.file_size > offset + length:
                    made.broken = made.broken or f"record {one.filename} lies outside of the file"
                    continue
                made.storages[one.filename.removeprefix(f"{root}data/")] = Span(
                    made.path, start, one.file_size, one.CRC or None
                )
        try:
            if pickled[0].file_size > LARGEST_PICKLE:
                made.broken = f"its pickle has {pickled[0].file_size:,} bytes"
                return
            data = archive.read(pickled[0])
        except (zipfile.BadZipFile, OSError, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            made.broken = f"its pickle cannot be read ({str(error)[:80]})"
            return
    _take(made, data)


def _start_of(file: Any, offset: int, member: zipfile.ZipInfo) -> int | None:
    """Where a member's bytes begin: behind its own header, whose extra field pads it."""
    file.seek(offset + member.header_offset)
    header = file.read(_LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER or header[:4] != ZIP:
        return None
    name, extra = struct.unpack_from("<HH", header, 26)
    return offset + member.header_offset + _LOCAL_HEADER + int(name) + int(extra)


def _take(made: TorchFile, data: bytes) -> None:
    """The value of a pickle."""
    try:
        found = read_pickle(data)
    except PickleError as error:
        made.broken = str(error)
        return
    made.tree, made.globals, made.called = found.value, found.globals, found.called


def _read_pickles(made: TorchFile, offset: int, length: int) -> None:
    """The older form: magic number, protocol, system, object, keys of the storages, storages; or one plain pickle."""
    head = read_bytes(made.path, offset, min(length, 64))
    if LEGACY not in head:
        if length > LARGEST_PICKLE:
            raise CheckpointError(f"{made.path}: a pickle of {length:,} bytes")
        if not head.startswith(b"\x80"):
            made.broken = f"it is no file of torch.save: it begins with {head[:8]!r}"
            return
        _take(made, read_bytes(made.path, offset, length))
        return
    try:
        found = _row_of_pickles(made.path, offset, length)
    except PickleError as error:
        made.broken, made.truncated = str(error), True
        return
    at = found[-1].stop
    made.tree, made.globals, made.called = found[3].value, found[3].globals, found[3].called
    keys = found[4].value if isinstance(found[4].value, list) else []
    forms = _storage_forms(made.tree)
    for key in map(storage_key, keys):
        raw = read_bytes(made.path, offset + at, 8)
        numbers = struct.unpack("<q", raw)[0] if len(raw) == 8 and at + 8 <= length else -1
        size = max(0, numbers) * SIZES.get(forms.get(key, "float32"), 4)
        if numbers < 0 or at + 8 + size > length:
            made.broken = made.broken or f"storage {key} ends at byte {at + 8 + size:,}, the file at {length:,}"
            made.truncated = True
            return
        made.storages[key] = Span(made.path, offset + at + 8, size)
        at += 8 + size


def _row_of_pickles(path: Path, offset: int, length: int) -> list[Pickled]:
    """The five pickles before the storages: of most files the beginning is enough."""
    for most in (8 << 20, LARGEST_PICKLE):
        data = read_bytes(path, offset, min(length, most))
        found: list[Pickled] = []
        try:
            for _ in range(5):
                found.append(read_pickle(data, found[-1].stop if found else 0))
            return found
        except PickleError:
            if most == LARGEST_PICKLE or length <= most:
                raise
    return []


def _storage_forms(tree: Any) -> dict[str, str]:
    """The number format of each storage that tensors refer to."""
    found: dict[str, str] = {}
    waiting = [tree]
    seen: set[int] = set()
    while waiting and len(seen) < 2_000_000:
        value = waiting.pop()
        if id(value) in seen or not isinstance(value, dict | list | tuple | Node):
            continue
        seen.add(id(value))
        if isinstance(value, Node):
            one = value.args
            if value.made_by == "persistent" and isinstance(one, tuple) and len(one) > 2 and isinstance(one[1], Global):
                found[storage_key(one[2])] = STORAGES.get(one[1].name, "float32")
                continue
            waiting += [value.state, value.args, value.items]
        else:
            waiting += list(value.values()) if isinstance(value, dict) else list(value)
    return found


def _check_storages(made: TorchFile) -> None:
    """Every tensor's storage is there and large enough."""
    if made.broken or made.unread:
        return
    lost = sorted({found.key for _, found in made.tensors if found.key and found.key not in made.storages})
    if lost:
        made.broken = f"records of {len(lost)} storages are missing (data/{lost[0]})"
        return
    for path, found in made.tensors:
        span = made.storages.get(found.key)
        size = SIZES.get(found.dtype)
        if span is not None and size and found.storage_numbers * size > span.length:
            made.broken = (
                f"{'.'.join(path)} needs {found.storage_numbers * size:,} bytes, its record has {span.length:,}"
            )
            made.truncated = True
            return
