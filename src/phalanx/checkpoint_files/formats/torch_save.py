"""One file of torch.save: a plain state_dict, a training checkpoint, a pickled model, or Lightning's `.ckpt`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phalanx.checkpoint_files.model import Checkpoint, Part
from phalanx.checkpoint_files.reading import size_of
from phalanx.checkpoint_files.taking import take_torch
from phalanx.checkpoint_files.torch_file import is_torch_file

NAME = "torch.save file"
ORDER = 90
_NAMES = (".pt", ".pth", ".ckpt", ".bin", ".pkl", ".tar", ".th")


def recognise(path: Path) -> bool:
    """By its first bytes; an empty or damaged file by its name."""
    if size_of(path) < 0:
        return False
    return is_torch_file(path) or path.name.endswith(_NAMES)


def read(path: Path) -> Checkpoint:
    """The file."""
    found = Checkpoint(path, NAME)
    taken = take_torch(found, path)
    if taken is not None:
        describe_lightning(found, *taken)
    return found


def describe_lightning(found: Checkpoint, part: Part, read: Any) -> None:
    """What Lightning adds: its version, and how far the loops are."""
    tree = read.tree
    if not isinstance(tree, dict) or "pytorch-lightning_version" not in tree:
        return
    version = tree["pytorch-lightning_version"]
    found.format = (
        f"Lightning checkpoint ({version})" if isinstance(version, str) and len(version) < 40 else "Lightning"
    )
    if tree.get("loops"):
        part.states["sampler"] = "progress of the loops"
