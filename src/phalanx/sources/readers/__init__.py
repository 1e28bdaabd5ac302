"""Readers turn what programs print into typed events. One file here is one reader; it is found by scanning.

A reader module has `TRIGGERS` (literals that make it look) and `read(window)`, which yields events.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

from phalanx.model import Event
from phalanx.sources.window import Window


class Reader(Protocol):
    """What a reader module offers."""

    __name__: str
    TRIGGERS: tuple[str, ...]

    def read(self, window: Window) -> Iterator[Event]:
        """The events that begin at this window's line; none if the trigger was a coincidence."""


@cache
def load_readers() -> tuple[Reader, ...]:
    """Every reader of this folder, by name."""
    names = sorted(module.name for module in iter_modules(__path__))
    return tuple(cast(Reader, import_module(f"{__name__}.{name}")) for name in names)
