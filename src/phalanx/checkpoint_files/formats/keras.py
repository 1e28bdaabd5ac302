"""Keras 3: `.keras` archives, `.weights.h5`, older `.h5` models, and weights in several files with a `.weights.json`."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

from phalanx.checkpoint_files.hdf5 import SIGNATURE, take_hdf5
from phalanx.checkpoint_files.model import Checkpoint, CheckpointError, Trouble
from phalanx.checkpoint_files.reading import LARGEST_TEXT, Window, open_regular, read_bytes, size_of
from phalanx.checkpoint_files.taking import inside, read_json
from phalanx.model import Unchecked

NAME = "Keras"
ORDER = 50
_WEIGHTS = "model.weights.h5"


def recognise(path: Path) -> bool:
    """By name, or as HDF5 by its first bytes."""
    if size_of(path) < 0:
        return False
    named = path.name.endswith((".keras", ".h5", ".hdf5", ".weights.json"))
    return named or read_bytes(path, 0, 8) == SIGNATURE


def read(path: Path) -> Checkpoint:
    """The archive, the file, or the files that a `.weights.json` names."""
    if path.name.endswith(".weights.json"):
        return _read_shards(path)
    if path.name.endswith(".keras"):
        found = Checkpoint(path, "Keras archive", framework="keras")
        _read_archive(found, path)
        return found
    found = Checkpoint(path, "Keras weights (HDF5)", framework="keras")
    take_hdf5(found, path, path.name)
    return found


def _read_archive(found: Checkpoint, path: Path) -> None:
    size = size_of(path)
    if not size:
        found.trouble(Trouble.TRUNCATED, path.name, "it is empty")
        return
    with open_regular(path) as file:
        try:
            archive = zipfile.ZipFile(Window(file, 0, size))
            members = {one.filename: one for one in archive.infolist()}
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
            found.trouble(
                Trouble.TRUNCATED, path.name, f"the archive's table of contents is missing ({str(error)[:60]})"
            )
            return
        for name in ("metadata.json", "config.json"):
            text = _text(found, path, archive, members.get(name), name)
            if name == "metadata.json" and isinstance(text, dict) and isinstance(text.get("keras_version"), str):
                found.format = f"Keras archive ({text['keras_version'][:20]})"
        member = members.get(_WEIGHTS)
        if member is None:
            found.trouble(Trouble.MISSING, f"{path.name}/{_WEIGHTS}", "the archive has no weights")
            return
        if member.compress_type != zipfile.ZIP_STORED:
            found.unchecked.append(
                Unchecked(f"weights in {path.name}", "an archive that is not compressed", essential=True)
            )
            return
        if not _is_whole(archive, member):
            found.trouble(Trouble.CORRUPT, f"{path.name}/{_WEIGHTS}", "its checksum is wrong")
        file.seek(member.header_offset + 26)
        name_length, extra = struct.unpack("<HH", file.read(4))
    start = member.header_offset + 30 + name_length + extra
    if start + member.file_size > size:
        found.trouble(Trouble.CORRUPT, path.name, "its table of contents does not fit the file")
        return
    take_hdf5(found, path, f"{path.name}/{_WEIGHTS}", start, member.file_size)


def _is_whole(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    """Whether a member's bytes match its checksum, read in pieces."""
    crc = 0
    try:
        with archive.open(member) as opened:
            while data := opened.read(1 << 20):
                crc = zlib.crc32(data, crc)
    except (zipfile.BadZipFile, OSError, zlib.error, EOFError):
        return False
    return crc == member.CRC


def _text(found: Checkpoint, path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo | None, name: str) -> Any:
    if member is None:
        found.trouble(Trouble.MISSING, f"{path.name}/{name}", "the archive has no such entry")
        return None
    try:
        if member.file_size > LARGEST_TEXT:
            raise ValueError(f"{member.file_size:,} bytes")
        return json.loads(archive.read(member))
    except (
        zipfile.BadZipFile,
        OSError,
        zlib.error,
        EOFError,
        ValueError,
        RecursionError,
        NotImplementedError,
    ) as error:
        found.trouble(Trouble.CORRUPT, f"{path.name}/{name}", str(error)[:80])
        return None


def _read_shards(path: Path) -> Checkpoint:
    found = Checkpoint(path.parent, "Keras weights in several files", framework="keras")
    try:
        said = read_json(path)
        places = said["weight_map"].values()
    except (CheckpointError, KeyError, TypeError, AttributeError):
        found.trouble(Trouble.CORRUPT, path.name, "it has no weight_map")
        return found
    names = sorted(
        {name for place in places for name in (place if isinstance(place, list) else [place]) if isinstance(name, str)}
    )
    for name in names:
        file = inside(path.parent, name)
        if file is None:
            found.trouble(Trouble.CORRUPT, path.name, f"it names {name[:80]!r}, outside of the folder")
        elif size_of(file) < 0:
            found.trouble(Trouble.MISSING, name, f"{path.name} names it")
        else:
            take_hdf5(found, file, name)
    found.parallelism["files"] = len(names)
    return found
