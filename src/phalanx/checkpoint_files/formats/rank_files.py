"""A folder of torch.save files that ranks wrote, one each: `rank0.pt`, `model-rank-3.pth`, `ckpt_2_of_8.pt`."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from phalanx.checkpoint_files.model import NOT_THERE, Checkpoint, Kind, Trouble
from phalanx.checkpoint_files.taking import entries_of, gaps, shown_in, take_torch
from phalanx.checkpoint_files.torch_file import is_torch_file

NAME = "torch.save files of ranks"
ORDER = 80
_RANK = re.compile(
    r"^(?P<before>.*?)(?:rank|worker|proc|gpu|shard|part)[-_.]?(?P<rank>\d{1,6})(?:[-_.]?of[-_.]?(?P<of>\d{1,6}))?(?P<after>[^\d].*)?$",
    re.I,
)
_OF = re.compile(r"^(?P<before>.*?)(?P<rank>\d{1,6})[-_.]?of[-_.]?(?P<of>\d{1,6})(?P<after>[^\d].*)?$", re.I)
_ENDS = (".pt", ".pth", ".bin", ".ckpt", ".pkl")
_WORLD = re.compile(r"world[-_]?size[-_.]?(\d{1,6})", re.I)


def recognise(path: Path) -> bool:
    """A folder with at least one file that names its rank and begins as torch.save writes."""
    return path.is_dir() and any(is_torch_file(one) for one, _, _ in _files(path)[:3])


def _files(folder: Path) -> list[tuple[Path, re.Match[str], int]]:
    found = []
    for one in entries_of(folder):
        named = _RANK.match(one.name) or _OF.match(one.name)
        if named and one.name.endswith(_ENDS):
            found.append((one, named, int(named["rank"])))
    return found


def read(path: Path) -> Checkpoint:
    """All of them. Files whose names differ in more than the rank are sets of their own; the largest decides the world."""
    found = Checkpoint(path, NAME)
    sets: dict[tuple[str, str], list[tuple[Path, int]]] = defaultdict(list)
    told: list[int] = []
    for one, named, rank in _files(path):
        sets[(named["before"] or "", named["after"] or "")].append((one, rank))
        told += [int(number) for number in (named["of"], *_WORLD.findall(one.name)) if number]
        take_torch(found, one, rank)
    most = max((rank for group in sets.values() for _, rank in group), default=-1)
    starts_at_one = min((rank for group in sets.values() for _, rank in group), default=0) == 1
    found.world_size = max(told) if told else most + (0 if starts_at_one else 1)
    for (before, after), group in sets.items():
        for rank in gaps((number - starts_at_one for _, number in group), found.world_size):
            name = group[0][0].name.replace(str(group[0][1]), str(rank + starts_at_one), 1)
            if len(group) > 1 or told:
                found.trouble(Trouble.MISSING, name, NOT_THERE, rank + starts_at_one)
        del before, after
    sharded = any(tensor.sharding for tensor in found.tensors)
    shapes = [
        {(tensor.name, tensor.shape) for tensor in part.tensors if tensor.kind is Kind.MODEL} for part in found.parts
    ]
    if sharded or (len(shapes) > 1 and any(one != shapes[0] for one in shapes)):
        found.fixed_world = "each file holds only the shard of its rank"
        found.parallelism["shards"] = found.world_size
    for one in entries_of(path):
        if (
            one.name.endswith(_ENDS)
            and is_torch_file(one)
            and shown_in(found, one) not in {p.file for p in found.parts}
        ):
            take_torch(found, one)
    return found
