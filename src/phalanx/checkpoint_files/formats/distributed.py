"""torch.distributed.checkpoint: `.metadata` says which stretch of which `__RANK_N.distcp` holds each part of each tensor."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from phalanx.checkpoint_files.dtypes import bytes_of
from phalanx.checkpoint_files.inventory import harmful, kind_and_name, part_of, states_in
from phalanx.checkpoint_files.model import Checkpoint, CheckpointError, Kind, Part, Tensor, Trouble
from phalanx.checkpoint_files.pickled import Node, PickleError
from phalanx.checkpoint_files.pickles import read_pickle
from phalanx.checkpoint_files.reading import read_bytes, size_of
from phalanx.checkpoint_files.taking import entries_of, inside, shown_in, take_torch
from phalanx.checkpoint_files.torch_file import TorchFile, read_torch
from phalanx.checkpoint_files.torch_tensors import numbers_in
from phalanx.model import Unchecked

NAME = "torch.distributed.checkpoint"
ORDER = 30
_FILE = re.compile(r"^__(\d+)_(\d+)\.distcp$")


def recognise(path: Path) -> bool:
    """A folder with `.metadata` or `.distcp` files."""
    return path.is_dir() and (
        size_of(path / ".metadata") >= 0 or any(one.name.endswith(".distcp") for one in entries_of(path)[:2000])
    )


def read(path: Path) -> Checkpoint:
    """The folder."""
    found = Checkpoint(path, NAME)
    read_into(found, path)
    return found


def read_into(found: Checkpoint, folder: Path) -> None:
    """Add a folder to a checkpoint: trainers write one for the model and one for the optimizer."""
    files = {one.name: one for one in entries_of(folder) if one.name.endswith(".distcp")}
    ranks = [int(named[1]) for name in files if (named := _FILE.match(name))]
    if ranks:
        found.world_size = max(max(ranks) + 1, found.world_size or 0)
    metadata = _metadata(found, folder / ".metadata")
    if metadata is None:
        for one in files.values():
            found.parts.append(Part(shown_in(found, one), bytes=size_of(one)))
        return
    storage = metadata.get("storage_data")
    kinds = metadata.get("state_dict_metadata")
    parts: dict[str, Part] = {}
    for key, info in storage.items() if isinstance(storage, dict) else ():
        if isinstance(key, Node) and isinstance(info, Node):
            _take_entry(found, folder, parts, kinds if isinstance(kinds, dict) else {}, key, info)
    if ranks or parts:
        writers = [int(match[1]) for name in parts if (match := _FILE.match(Path(name).name))]
        found.world_size = max([found.world_size or 0, *(rank + 1 for rank in writers)])
    found.parts.extend(parts.values())
    used = {Path(name).name for name in parts}
    for name, one in files.items():
        if name not in used:
            found.trouble(Trouble.STALE, shown_in(found, one), "no tensor of .metadata is in it")
    _chunks(found, kinds if isinstance(kinds, dict) else {}, storage if isinstance(storage, dict) else {})
    for name in ("common.pt", "meta.pt"):  # Megatron's and Lightning's part that all ranks share
        if size_of(folder / name) >= 0:
            take_torch(found, folder / name)


def _metadata(found: Checkpoint, path: Path) -> Node | None:
    shown = shown_in(found, path)
    size = size_of(path)
    if size < 0:
        found.trouble(Trouble.MISSING, shown, "it is written last: the save did not finish")
        return None
    if not size:
        found.trouble(Trouble.TRUNCATED, shown, "it is empty")
        return None
    try:
        pickled = read_pickle(read_bytes(path))
    except PickleError as error:
        found.trouble(Trouble.TRUNCATED, shown, str(error))
        return None
    except CheckpointError as error:
        found.trouble(Trouble.CORRUPT, shown, str(error))
        return None
    if bad := harmful(pickled.globals):
        found.trouble(Trouble.RUNS_CODE, shown, ", ".join(bad[:4]))
    if not isinstance(pickled.value, Node) or not pickled.value.name.endswith(".Metadata"):
        found.trouble(Trouble.CORRUPT, shown, "it holds no Metadata object")
        return None
    return pickled.value


def _take_entry(
    found: Checkpoint, folder: Path, parts: dict[str, Part], kinds: dict[Any, Any], key: Node, info: Node
) -> None:
    """One stretch of one file."""
    name, file = key.get("fqn"), inside(folder, info.get("relative_path"))
    offset, length = info.get("offset"), info.get("length")
    if not isinstance(name, str) or file is None or not isinstance(offset, int) or not isinstance(length, int):
        found.trouble(Trouble.CORRUPT, ".metadata", "an entry has no name, or leads out of the folder")
        return
    shown = shown_in(found, file)
    rank = _FILE.match(file.name)
    if shown not in parts:
        parts[shown] = Part(shown, int(rank[1]) if rank else None, max(0, size_of(file)))
        if size_of(file) < 0:
            found.trouble(Trouble.MISSING, shown, "`.metadata` names it", parts[shown].rank)
    part = parts[shown]
    if size_of(file) < 0:
        return
    if size_of(file) < offset + length or offset < 0 or length < 0:
        if not any(one.file == shown and one.trouble is Trouble.TRUNCATED for one in found.problems):
            need = f"{name} ends at byte {offset + length:,}, the file at {size_of(file):,}"
            found.trouble(Trouble.TRUNCATED, shown, need, part.rank)
        return
    if info.get("transform_descriptors"):
        found.unchecked.append(Unchecked(f"values of {name}", "transforms that are not undone here"))
        return
    entry = kinds.get(name)
    taken = read_torch(file, offset, length)
    if taken.broken:
        found.trouble(Trouble.CORRUPT, shown, f"{name}: {taken.broken}", part.rank)
        return
    if bad := harmful(taken.globals):
        found.trouble(Trouble.RUNS_CODE, shown, ", ".join(bad[:4]), part.rank)
    if isinstance(entry, Node) and entry.name.endswith("TensorStorageMetadata"):
        _take_tensor(found, part, name, entry, key, taken)
    else:
        states_in(_nested(name, taken.tree), part)


def _nested(name: str, value: Any) -> dict[str, Any]:
    """A flat name as the dictionaries it was flattened from."""
    for word in reversed(name.split(".")[:4]):
        value = {word: value}
    return value if isinstance(value, dict) else {}


def _take_tensor(found: Checkpoint, part: Part, name: str, entry: Node, key: Node, taken: TorchFile) -> None:
    kind, own = kind_and_name(name.split("."))
    if kind is Kind.MODEL:
        own = re.sub(r"^(?:app\.)?(?:model|state_dict|module|net)\.", "", name)
        part.states.setdefault("model", "parameters")
    elif kind is Kind.OPTIMIZER:
        part.states.setdefault("optimizer", "there")
    else:
        states_in(_nested(name, True), part)
    whole = numbers_in(entry.get("size"))
    offsets = numbers_in(key.get("offset"))
    for one in part_of(taken, part.file).tensors[:1]:
        is_part = whole != one.shape
        made = Tensor(own, one.dtype, one.shape, kind, one.span, one.start, one.size, one.is_plain)
        if is_part:
            made = Tensor(
                own,
                one.dtype,
                one.shape,
                kind,
                one.span,
                one.start,
                one.size,
                one.is_plain,
                f"at {list(offsets)}",
                whole,
            )
        part.tensors.append(made)
        if one.dtype and bytes_of(one.dtype, one.shape) is None:
            found.unchecked.append(Unchecked(f"values of {name}", f"a reader of {one.dtype}"))


def _chunks(found: Checkpoint, kinds: dict[Any, Any], storage: dict[Any, Any]) -> None:
    """Every chunk that a tensor is said to be made of has a stretch of a file."""
    stored: dict[str, set[tuple[int, ...]]] = {}
    for key in storage:
        if isinstance(key, Node) and isinstance(key.get("fqn"), str):
            stored.setdefault(key.get("fqn"), set()).add(numbers_in(key.get("offset")))
    most = 1
    for name, entry in kinds.items():
        if not isinstance(entry, Node) or not isinstance(name, str):
            continue
        chunks = entry.get("chunks")
        if not isinstance(chunks, list):
            if name not in stored:
                found.trouble(Trouble.CORRUPT, ".metadata", f"{name} is listed, but no file holds it")
            continue
        offsets = {numbers_in(one.get("offsets")) for one in chunks if isinstance(one, Node)}
        most = max(most, len(offsets))
        lost = offsets - stored.get(name, set())
        if lost and stored.get(name) != {()}:
            found.trouble(Trouble.CORRUPT, ".metadata", f"{len(lost)} of {len(offsets)} parts of {name} are in no file")
    if most > 1:
        found.parallelism["shards"] = max(most, found.parallelism.get("shards", 1))
