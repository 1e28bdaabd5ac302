"""Megatron-LM: `latest_checkpointed_iteration.txt` names `iter_0000100/mp_rank_TT[_PPP]/model_optim_rng.pt`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from phalanx.checkpoint_files.formats import distributed
from phalanx.checkpoint_files.model import Checkpoint, Part, Trouble
from phalanx.checkpoint_files.pickled import Node
from phalanx.checkpoint_files.reading import read_bytes, size_of
from phalanx.checkpoint_files.taking import entries_of, shown_in, take_torch

NAME = "Megatron-LM"
ORDER = 10
_LATEST = "latest_checkpointed_iteration.txt"
_RANK = re.compile(r"^mp_rank_(?P<tensor>\d\d)(?:_(?P<pipeline>\d{3}))?(?:_(?P<data>\d{3}))?$")
_FILES = ("model_optim_rng.pt", "model_rng.pt", "model_weights.ckpt")


def recognise(path: Path) -> bool:
    """A folder with the file that names the iteration, or with folders of ranks."""
    return path.is_dir() and (size_of(path / _LATEST) >= 0 or any(_RANK.match(one.name) for one in _folders(path)))


def _folders(path: Path) -> list[Path]:
    return [one for one in entries_of(path) if one.is_dir()]


def read(path: Path) -> Checkpoint:
    """The iteration that is named, or the folder given."""
    found = Checkpoint(path, NAME, fixed_world="each mp_rank folder holds one slice of the model")
    folder = path
    if size_of(path / _LATEST) >= 0:
        said = read_bytes(path / _LATEST, 0, 64).decode("utf-8", "replace").strip()
        name = "release" if said == "release" else f"iter_{int(said):07d}" if said.isdigit() else said
        folder, found.step = path / name, name
        if "/" in name or not folder.is_dir():
            there = ", ".join(one.name for one in _folders(path))[-120:] or "none"
            found.trouble(Trouble.POINTER, _LATEST, f"it names {said!r}, which is not there; folders: {there}")
            return found
    if distributed.recognise(folder):
        found.fixed_world = ""
        distributed.read_into(found, folder)
        for part in found.parts:
            part.must_agree = True
        return found
    _take_ranks(found, folder)
    return found


def _take_ranks(found: Checkpoint, folder: Path) -> None:
    there: dict[tuple[int, int], str] = {}
    arguments: dict[str, int] = {}
    for one in _folders(folder):
        named = _RANK.match(one.name)
        if named is None:
            continue
        place = (int(named["tensor"]), int(named["pipeline"] or 0))
        there[place] = one.name
        files = [one / name for name in _FILES if size_of(one / name) >= 0]
        if not files:
            found.trouble(Trouble.MISSING, shown_in(found, one / _FILES[0]), "the folder is there, its file is not")
        for file in files:
            taken = take_torch(found, file)
            if taken is not None:
                _take_arguments(found, arguments, taken[0], taken[1].tree, place)
        if size_of(one / "distrib_optim.pt") >= 0:
            take_torch(found, one / "distrib_optim.pt")
    tensor = arguments.get("tensor_model_parallel_size") or max((place[0] for place in there), default=0) + 1
    pipeline = arguments.get("pipeline_model_parallel_size") or max((place[1] for place in there), default=0) + 1
    found.world_size = arguments.get("world_size")
    found.parallelism = {"tensor": tensor, "pipeline": pipeline}
    if found.world_size:
        found.parallelism["data"] = max(1, found.world_size // max(1, tensor * pipeline))
    for first in range(min(tensor, 4096)):
        for second in range(min(pipeline, 4096)):
            if (first, second) not in there:
                name = f"mp_rank_{first:02d}" + (f"_{second:03d}" if pipeline > 1 else "")
                detail = f"tensor-parallel size {tensor}, pipeline-parallel size {pipeline}"
                found.trouble(Trouble.MISSING, shown_in(found, folder / name / _FILES[0]), detail)


def _take_arguments(found: Checkpoint, told: dict[str, int], part: Part, tree: Any, place: tuple[int, int]) -> None:
    """The arguments of the run, which each file has: sizes, and the rank that wrote it."""
    given = tree.get("args") if isinstance(tree, dict) else None
    if not isinstance(given, Node):
        return
    for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "world_size"):
        value = given.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 24:
            told.setdefault(name, value)
    rank, tensor = given.get("rank"), told.get("tensor_model_parallel_size", 1)
    if isinstance(rank, int) and tensor > 1:
        part.rank = rank
        if rank % tensor != place[0]:
            detail = f"rank {rank} wrote it, which is tensor-parallel rank {rank % tensor} of {tensor}"
            found.trouble(Trouble.MISPLACED, part.file, detail, rank)
    consumed = given.get("consumed_train_samples")
    if isinstance(consumed, int):
        part.states.setdefault("sampler", f"{consumed} samples consumed")
