"""safetensors: one file, or a folder of them with or without an index."""

from __future__ import annotations

from pathlib import Path

from phalanx.checkpoint_files.model import Checkpoint
from phalanx.checkpoint_files.reading import size_of
from phalanx.checkpoint_files.safetensors_file import is_safetensors, take_safetensors
from phalanx.checkpoint_files.taking import entries_of
from phalanx.checkpoint_files.weights_index import NUMBERED, take_index, take_strays, take_weights

NAME = "safetensors"
ORDER = 60
INDEXES = (
    "model.safetensors.index.json",
    "pytorch_model.bin.index.json",
    "diffusion_pytorch_model.safetensors.index.json",
)


def recognise(path: Path) -> bool:
    """A file by its name or first bytes; a folder by an index, numbered files or files of that name."""
    if path.is_dir():
        return any(
            one.name in INDEXES or NUMBERED.match(one.name) or one.name.endswith(".safetensors")
            for one in entries_of(path)
        )
    if size_of(path) < 0:
        return False
    return path.name.endswith((".safetensors", ".safetensors.index.json", ".bin.index.json")) or is_safetensors(path)


def read(path: Path) -> Checkpoint:
    """The file, the index, or all there is in the folder."""
    found = Checkpoint(path, NAME)
    if not path.is_dir():
        if path.name.endswith(".json"):
            found = Checkpoint(path.parent, NAME)
            take_index(found, path)
        else:
            take_safetensors(found, path)
        return found
    take_folder(found, path)
    return found


def take_folder(found: Checkpoint, folder: Path) -> None:
    """Weights in a folder, whatever form they have."""
    index = next((folder / name for name in INDEXES if size_of(folder / name) >= 0), None)
    if index is not None:
        if ".bin." in index.name:
            found.format = found.format if found.format != NAME else "torch.save files with an index"
        take_index(found, index)
        return
    take_strays(found, folder, set())
    named = [one for one in entries_of(folder) if one.name.endswith(".safetensors") and not NUMBERED.match(one.name)]
    named += [folder / "pytorch_model.bin"] if size_of(folder / "pytorch_model.bin") >= 0 else []
    for one in named:
        take_weights(found, one)
