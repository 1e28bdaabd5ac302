"""The formats of checkpoints: one module each, with NAME, ORDER (lower is asked first), `recognise(path)` and `read(path)`.

`recognise` looks at names and first bytes only; `read` notes what is wrong in the Checkpoint and raises CheckpointError
only where nothing can be said.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, cast

from phalanx.checkpoint_files.model import Checkpoint


class Format(Protocol):
    """A module of this folder."""

    NAME: str
    ORDER: int

    def recognise(self, path: Path) -> bool:
        """Whether a file or folder is of this format."""

    def read(self, path: Path) -> Checkpoint:
        """Everything that can be said of it."""


@cache
def formats() -> tuple[Format, ...]:
    """All formats, those that look for the clearest signs first."""
    modules = [import_module(f"{__name__}.{one.name}") for one in iter_modules(__path__)]
    return tuple(sorted((cast(Format, one) for one in modules), key=lambda one: one.ORDER))


def format_of(path: Path) -> Format | None:
    """The format of a file or folder; None if it is no checkpoint."""
    return next((one for one in formats() if one.recognise(path)), None)
