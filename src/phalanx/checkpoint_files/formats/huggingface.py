"""Folders of Hugging Face's Trainer (`checkpoint-500/`) and of Accelerate's `save_state`."""

from __future__ import annotations

import re
from pathlib import Path

from phalanx.checkpoint_files.formats import deepspeed, distributed
from phalanx.checkpoint_files.formats.safetensors import take_folder
from phalanx.checkpoint_files.model import Checkpoint, CheckpointError, Kind, Part, Tensor, Trouble
from phalanx.checkpoint_files.reading import read_bytes, size_of
from phalanx.checkpoint_files.taking import entries_of, gaps, inside, read_json, take_torch

NAME = "Hugging Face Trainer"
ORDER = 15
_RANDOM = re.compile(r"^(?:rng_state|random_states)(?:_(\d+))?\.(?:pth|pkl)$")
_STATES = {
    "optimizer": re.compile(r"^optimizer(?:_\d+)?\.(?:pt|bin)$"),
    "scheduler": re.compile(r"^scheduler(?:_\d+)?\.(?:pt|bin)$"),
    "scaler": re.compile(r"^scaler\.pt$"),
    "sampler": re.compile(r"^(?:sampler|dl_state_dict)(?:_\d+)?\.bin$"),
}
_FSDP = re.compile(r"^(?P<what>pytorch_model_fsdp|optimizer)_(?P<number>\d+)$")
_OTHERS = re.compile(r"^(?:pytorch_model(?:_fsdp)?(?:_\d+)?\.bin|custom_checkpoint_\d+\.pkl)$")


def recognise(path: Path) -> bool:
    """A folder with `trainer_state.json`, or with random states beside weights or an optimizer."""
    if not path.is_dir():
        return False
    names = [one.name for one in entries_of(path)]
    return "trainer_state.json" in names or any(_RANDOM.match(name) for name in names)


def read(path: Path) -> Checkpoint:
    """Weights in whichever form, and the states beside them."""
    is_trainer = size_of(path / "trainer_state.json") >= 0
    found = Checkpoint(path, NAME if is_trainer else "Accelerate")
    names = [one.name for one in entries_of(path)]
    if "latest" in names:
        _take_deepspeed(found, path)
    for one in entries_of(path):
        if one.is_dir() and _FSDP.match(one.name):
            distributed.read_into(found, one)
            if one.name.startswith("optimizer"):
                _mark_as_optimizer(found, one.name)
    take_folder(found, path)
    _take_states(found, path)
    if is_trainer:
        _take_trainer(found, path)
    return found


def _take_deepspeed(found: Checkpoint, path: Path) -> None:
    said = read_bytes(path / "latest", 0, 4096).decode("utf-8", "replace").strip()
    target = inside(path, said)
    if target is None or not target.is_dir():
        found.trouble(Trouble.POINTER, "latest", f"it names {said[:80]!r}, which is not there")
        return
    found.step = said
    found.fixed_world = "ZeRO's shards belong to the ranks that wrote them"
    deepspeed.read_into(found, target)


def _mark_as_optimizer(found: Checkpoint, folder: str) -> None:
    for part in found.parts:
        if part.file.startswith(f"{folder}/"):
            part.states = {"optimizer": "there"}
            part.tensors = [
                Tensor(one.name, one.dtype, one.shape, Kind.OPTIMIZER, one.span, one.start, one.size, one.is_plain)
                for one in part.tensors
            ]


def _take_states(found: Checkpoint, path: Path) -> None:
    known = {part.file for part in found.parts}
    ranks: list[int] = []
    for one in entries_of(path):
        named = _RANDOM.match(one.name)
        state = next((name for name, pattern in _STATES.items() if pattern.match(one.name)), None)
        if one.is_dir() or one.name in known or not (named or state or _OTHERS.match(one.name)):
            continue
        rank = int(named[1]) if named and named[1] else None
        taken = take_torch(found, one, rank)
        if taken is None:
            continue
        part = taken[0]
        part.must_agree = part.must_agree and state is None
        if named:
            part.states = {"random": f"of rank {rank}" if rank is not None else "of one process"}
            part.tensors, ranks = (
                [_other(tensor) for tensor in part.tensors],
                [*ranks, *([rank] if rank is not None else [])],
            )
        elif state:
            kind = Kind.OPTIMIZER if state == "optimizer" else Kind.OTHER
            part.states = {state: part.states.get(state, "there")}
            part.tensors = [_other(tensor, kind) for tensor in part.tensors]
            part.stamps = {}
    if ranks:
        found.world_size = max([found.world_size or 0, max(ranks) + 1])
        form = "rng_state_{}.pth" if found.format == NAME else "random_states_{}.pkl"
        for rank in gaps(ranks, found.world_size):
            found.trouble(Trouble.MISSING, form.format(rank), "the random states of this rank are in it", rank)


def _other(one: Tensor, kind: Kind = Kind.OTHER) -> Tensor:
    return Tensor(one.name, one.dtype, one.shape, kind, one.span, one.start, one.size, one.is_plain)


def _take_trainer(found: Checkpoint, path: Path) -> None:
    """The Trainer's own record: how far it was."""
    part = Part("trainer_state.json", bytes=size_of(path / "trainer_state.json"))
    try:
        said = read_json(path / "trainer_state.json")
    except CheckpointError as error:
        trouble = Trouble.TRUNCATED if not part.bytes else Trouble.CORRUPT
        found.trouble(trouble, part.file, str(error).partition(": ")[2])
        return
    found.parts.append(part)
    if not isinstance(said, dict):
        return
    for name in ("global_step", "epoch"):
        if isinstance(said.get(name), int | float):
            part.stamps[name] = said[name]
    part.states["sampler"] = "position by global_step"
    number = re.fullmatch(r"checkpoint-(\d+)", path.resolve().name)
    if number and said.get("global_step") != int(number[1]):
        detail = f"global_step is {said.get('global_step')}, the folder says {number[1]}"
        found.trouble(Trouble.MISPLACED, part.file, detail)
