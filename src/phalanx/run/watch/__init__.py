"""Looks at running ranks from outside and inside: samples, heartbeats, stalls, deaths, stragglers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phalanx.run.watch.watch import Watch

__all__ = ["Watch"]


def __getattr__(name: str) -> object:
    """The watch is loaded when asked for: who attaches to a job needs its parts only, on every host at once."""
    if name == "Watch":
        return import_module(f"{__name__}.watch").Watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
