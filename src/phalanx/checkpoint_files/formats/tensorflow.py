"""TensorFlow checkpoints: `checkpoint` names `ckpt-5`, which is `ckpt-5.index` and `ckpt-5.data-00000-of-00002`, …"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from phalanx.checkpoint_files.dtypes import TENSORFLOW, bytes_of
from phalanx.checkpoint_files.model import Checkpoint, Kind, Part, Span, Tensor, Trouble
from phalanx.checkpoint_files.reading import LARGEST_TEXT, read_bytes, size_of
from phalanx.checkpoint_files.taking import entries_of, inside
from phalanx.checkpoint_files.tensor_bundle import Entry, TableError, read_table

NAME = "TensorFlow checkpoint"
ORDER = 40
_DATA = re.compile(r"^(?P<base>.+)\.data-(?P<number>\d{5})-of-(?P<of>\d{5})$")
_POINTER = re.compile(r'^\s*model_checkpoint_path:\s*"([^"]*)"', re.M)
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_OPTIMIZER = re.compile(r"optimizer|\.OPTIMIZER_SLOT|(?:^|/)(?:m|v|Adam(?:_1)?|Momentum)$", re.I)
_STAMP = re.compile(r"(?:^|/)(save_counter|_?iterations?|step|global_step|epoch|iter)$", re.I)


def recognise(path: Path) -> bool:
    """A folder with an index, a folder whose `checkpoint` names one, an index, a data file, or the name without its end."""
    if path.is_dir():
        names = [one.name for one in entries_of(path)]
        return any(name.endswith(".index") or _DATA.match(name) for name in names) or _pointer(path) is not None
    return _prefix(path) is not None


def _pointer(folder: Path) -> str | None:
    if not 0 <= size_of(folder / "checkpoint") <= 1 << 20:
        return None
    said = _POINTER.search(read_bytes(folder / "checkpoint").decode("utf-8", "replace"))
    return said[1] if said else None


def _prefix(path: Path) -> Path | None:
    """`ckpt-5` of any of its files."""
    named = _DATA.match(path.name)
    if named:
        return path.with_name(named["base"])
    if path.name.endswith(".index") and size_of(path) >= 0:
        return path.with_name(path.name.removesuffix(".index"))
    return path if path.name and size_of(path) < 0 and size_of(path.with_name(f"{path.name}.index")) >= 0 else None


def read(path: Path) -> Checkpoint:
    """The checkpoint that the folder's `checkpoint` names, the latest there is, or the one given."""
    if not path.is_dir():
        prefix = _prefix(path)
        assert prefix is not None
        found = Checkpoint(prefix.parent, NAME, framework="tensorflow", step=prefix.name)
        _read_bundle(found, prefix)
        return found
    found = Checkpoint(path, NAME, framework="tensorflow")
    said = _pointer(path)
    bases = [one.name.removesuffix(".index") for one in entries_of(path) if one.name.endswith(".index")]
    bases += [
        named["base"] for one in entries_of(path) if (named := _DATA.match(one.name)) and named["base"] not in bases
    ]
    name = Path(said).name if said else bases[-1]
    prefix = inside(path, name) or path / bases[-1]
    found.step = prefix.name
    if said and name not in bases:
        there = ", ".join(dict.fromkeys(bases))[-120:] or "none"
        found.trouble(Trouble.POINTER, "checkpoint", f"it names {said[:80]!r}, which is not there; there are: {there}")
        return found
    _read_bundle(found, prefix)
    return found


def _read_bundle(found: Checkpoint, prefix: Path) -> None:
    index = prefix.with_name(f"{prefix.name}.index")
    shards = {
        int(named["number"]): (one, int(named["of"]))
        for one in entries_of(prefix.parent)
        if (named := _DATA.match(one.name)) and named["base"] == prefix.name
    }
    part = Part(index.name, bytes=max(0, size_of(index)))
    found.parts.append(part)
    count = max((of for _, of in shards.values()), default=1)
    entries: dict[bytes, Entry] = {}
    if size_of(index) < 0:
        found.trouble(
            Trouble.MISSING, index.name, "it names the tensors; the save did not finish, or it was not copied"
        )
    elif not size_of(index):
        found.trouble(Trouble.TRUNCATED, index.name, "it is empty")
    else:
        try:
            count, entries = read_table(read_bytes(index, most=LARGEST_TEXT * 4))
        except TableError as error:
            found.trouble(Trouble.TRUNCATED, index.name, str(error))
    for number in range(min(count, 100_000)):
        name = f"{prefix.name}.data-{number:05d}-of-{count:05d}"
        size = size_of(prefix.with_name(name))
        if size < 0:
            found.trouble(Trouble.MISSING, name, f"the checkpoint has {count} files of data")
            continue
        found.parts.append(Part(name, number if count > 1 else None, size))
        ends = [(entry.offset + entry.size, key) for key, entry in entries.items() if entry.shard == number]
        end, key = max(ends, default=(0, b""))
        if end > size:
            detail = f"{_name(key)} ends at byte {end:,}, the file at {size:,}"
            found.trouble(Trouble.TRUNCATED, name, detail)
    if count > 1:
        found.parallelism["files"] = count
    for key, entry in entries.items():
        _take(part, prefix, count, key, entry)


def _name(key: bytes) -> str:
    return key.decode("utf-8", "replace").removesuffix(_VALUE)[:200]


def _take(part: Part, prefix: Path, count: int, key: bytes, entry: Entry) -> None:
    name, dtype = _name(key), TENSORFLOW.get(entry.dtype, f"type {entry.dtype}")
    if name == "_CHECKPOINTABLE_OBJECT_GRAPH" or name.endswith(
        (".ATTRIBUTES/OBJECT_CONFIG_JSON", ".ATTRIBUTES/py_state")
    ):
        return
    file = prefix.with_name(f"{prefix.name}.data-{entry.shard:05d}-of-{count:05d}")
    whole = size_of(file) >= entry.offset + entry.size and bytes_of(dtype, entry.shape) == entry.size
    stamp = _STAMP.search(name)
    if stamp and whole and dtype in ("int64", "int32") and not entry.shape:
        part.stamps[name] = struct.unpack(
            "<q" if dtype == "int64" else "<i", read_bytes(file, entry.offset, entry.size)
        )[0]
    kind = Kind.OPTIMIZER if _OPTIMIZER.search(name) else Kind.OTHER if stamp else Kind.MODEL
    if "iterator" in name.lower() or "/_iterator" in name:
        part.states["sampler"] = "a dataset iterator"
    if "seed_generator" in name or "rng" in name.lower().split("/"):
        kind = Kind.OTHER
        part.states["random"] = "there"
    if kind is not Kind.OTHER:
        part.states["optimizer" if kind is Kind.OPTIMIZER else "model"] = "there"
    span = Span(file, entry.offset, entry.size) if whole and entry.size else None
    part.tensors.append(Tensor(name, dtype, entry.shape, kind, span, 0, entry.size))
