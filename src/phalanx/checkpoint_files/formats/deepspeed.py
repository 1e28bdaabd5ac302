"""DeepSpeed: `latest` names a folder with `mp_rank_*_model_states.pt` and, under ZeRO, `zero_pp_rank_*_optim_states.pt`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from phalanx.checkpoint_files.model import Checkpoint, Kind, Part, Tensor, Trouble
from phalanx.checkpoint_files.pickled import Node
from phalanx.checkpoint_files.reading import read_bytes, size_of
from phalanx.checkpoint_files.taking import entries_of, gaps, inside, shown_in, take_torch
from phalanx.checkpoint_files.torch_tensors import numbers_in

NAME = "DeepSpeed"
ORDER = 20
_OPTIMIZER = re.compile(r"^(?P<form>bf16_|fp16_)?zero_pp_rank_(?P<data>\d+)_mp_rank_(?P<model>\d+)_?optim_states\.pt$")
_MODEL = re.compile(r"^(?:zero_pp_rank_(?P<data>\d+)_)?mp_rank_(?P<model>\d+)_model_states\.pt$")
_OTHER = re.compile(r"^(?:layer_\d+|expert_\d+|expp_rank_\d+).*_states\.pt$")


def recognise(path: Path) -> bool:
    """A folder with such files, or with `latest` and a folder that has them or lacks."""
    return path.is_dir() and (_has_states(path) or _target(path) is not None)


def _has_states(folder: Path) -> bool:
    return any(_OPTIMIZER.match(one.name) or _MODEL.match(one.name) for one in entries_of(folder))


def _target(folder: Path) -> str | None:
    """What `latest` says; None if this is no folder of DeepSpeed's."""
    if size_of(folder / "latest") < 0 or size_of(folder / "latest") > 4096:
        return None
    said = read_bytes(folder / "latest").decode("utf-8", "replace").strip()
    others = [one for one in entries_of(folder) if one.is_dir() and _has_states(one)]
    return said if others or said.startswith("global_step") else None


def read(path: Path) -> Checkpoint:
    """The folder that `latest` names, or the one given."""
    found = Checkpoint(path, NAME, fixed_world="ZeRO's shards belong to the ranks that wrote them")
    folder = path
    if not _has_states(path):
        said = _target(path) or ""
        target = inside(path, said)
        if target is None or not target.is_dir():
            there = ", ".join(one.name for one in entries_of(path) if one.is_dir())[:120] or "none"
            found.trouble(Trouble.POINTER, "latest", f"it names {said[:80]!r}, which is not there; folders: {there}")
            return found
        folder, found.step = target, said
    read_into(found, folder)
    return found


def read_into(found: Checkpoint, folder: Path) -> None:
    """All files of one step."""
    told: dict[str, int] = {}
    shards: dict[tuple[str, int], set[int]] = {}  # kind and model rank -> data ranks
    for one in entries_of(folder):
        optimizer, model = _OPTIMIZER.match(one.name), _MODEL.match(one.name)
        named = optimizer or model
        if named is None:
            if _OTHER.match(one.name):
                take_torch(found, one)
            continue
        data = int(named["data"]) if named["data"] else None
        taken = take_torch(found, one, data)
        shards.setdefault(("optim" if optimizer else "model", int(named["model"])), set()).add(data or 0)
        if taken is not None:
            _take(told, taken[0], taken[1].tree, is_optimizer=optimizer is not None)
    is_third = any(kind == "model" and len(data) > 1 for (kind, _), data in shards.items()) or told.get("stage") == 3
    _lay_out(found, folder, told, shards, is_third)
    if is_third:  # the shapes of what is partitioned are told apart from the (empty) tensors
        for part in found.parts:
            part.tensors = [one for one in part.tensors if one.kind is not Kind.MODEL or 0 not in one.shape]


def _lay_out(
    found: Checkpoint, folder: Path, told: dict[str, int], shards: dict[tuple[str, int], set[int]], is_third: bool
) -> None:
    """How many ranks there were, by what the files say and by their names, and who is missing."""
    models = sorted({model for _, model in shards})
    tensor = max(told.get("mp_world_size", 1), max(models, default=0) + 1)
    data = told.get("partitions") or told.get("dp_world_size") or 1
    data = max(data, *(max(ranks) + 1 for ranks in shards.values())) if shards and not told else data
    found.world_size = data * tensor
    found.parallelism["data"] = data
    if tensor > 1:
        found.parallelism["tensor or pipeline"] = tensor
    if told.get("stage"):
        found.parallelism["ZeRO stage"] = told["stage"]
    if not told.get("stage") and not any(kind == "optim" for kind, _ in shards):
        found.fixed_world = ""
    zero = told.get("stage") or any(kind == "optim" for kind, _ in shards)
    names = {one.name for one in entries_of(folder)}
    form = "bf16_" if any(name.startswith("bf16_") for name in names) else ""
    for model in range(tensor):
        if is_third:
            _missing(
                found, folder, shards, ("model", model), data, f"zero_pp_rank_{{}}_mp_rank_{model:02d}_model_states.pt"
            )
        elif ("model", model) not in shards:
            name = f"mp_rank_{model:02d}_model_states.pt"
            found.trouble(Trouble.MISSING, shown_in(found, folder / name), "the parameters and the step are in it")
        if zero:
            name = f"{form}zero_pp_rank_{{}}_mp_rank_{model:02d}_optim_states.pt"
            _missing(found, folder, shards, ("optim", model), data, name)


def _missing(
    found: Checkpoint,
    folder: Path,
    shards: dict[tuple[str, int], set[int]],
    key: tuple[str, int],
    count: int,
    name: str,
) -> None:
    there = shards.get(key, set())
    for rank in gaps(there, count):
        detail = f"{count} data-parallel ranks saved, {len(there)} files are there"
        found.trouble(Trouble.MISSING, shown_in(found, folder / name.format(rank)), detail, rank)
    for rank in sorted(one for one in there if one >= count):
        shown = shown_in(found, folder / name.format(rank))
        found.trouble(Trouble.STALE, shown, f"only {count} data-parallel ranks saved this step", rank)


def _take(told: dict[str, int], part: Part, tree: Any, is_optimizer: bool) -> None:
    if not isinstance(tree, dict):
        return
    for name in ("dp_world_size", "mp_world_size"):
        if isinstance(tree.get(name), int):
            told[name] = max(told.get(name, 0), tree[name])
    if is_optimizer:
        state = tree.get("optimizer_state_dict")
        if isinstance(state, dict):
            told["stage"] = _stage(state.get("zero_stage")) or told.get("stage", 0)
            count = state.get("partition_count")
            counts = count if isinstance(count, list) else [count]
            told["partitions"] = max([told.get("partitions", 0), *(one for one in counts if isinstance(one, int))])
        part.states = {"optimizer": "a partition"} | ({"scaler": "there"} if _has_scaler(state) else {})
        part.tensors = [_as_optimizer(one) for one in part.tensors]
        return
    if not tree.get("lr_scheduler"):
        part.states.pop("scheduler", None)
    if not tree.get("optimizer"):
        part.states.pop("optimizer", None)
    part.states.pop("random", None) if not tree.get("random_ltd") and "random_ltd" in tree else None
    shapes = tree.get("param_shapes")
    known = {one.name for one in part.tensors}
    for group in shapes if isinstance(shapes, list) else [shapes]:
        for name, shape in group.items() if isinstance(group, dict) else ():
            if isinstance(name, str) and (name not in known or _is_empty(part, name)):
                part.tensors.append(Tensor(name, "", numbers_in(shape), Kind.MODEL))
    if part.tensors:
        part.states["model"] = "parameters"


def _is_empty(part: Part, name: str) -> bool:
    return any(one.name == name and 0 in one.shape for one in part.tensors)


def _as_optimizer(one: Tensor) -> Tensor:
    return Tensor(one.name, one.dtype, one.shape, Kind.OPTIMIZER, one.span, one.start, one.size, one.is_plain)


def _stage(value: Any) -> int:
    """A number, or the member of ZeroStageEnum that it is."""
    if isinstance(value, Node):
        value = value.args[0] if isinstance(value.args, tuple) and value.args else 0
    return value if isinstance(value, int) and 0 <= value <= 3 else 0


def _has_scaler(state: Any) -> bool:
    return isinstance(state, dict) and state.get("loss_scaler") is not None and bool(state.get("dynamic_loss_scale"))
