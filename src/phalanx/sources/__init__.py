"""Readers of what a job leaves behind: files in, events out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phalanx.sources.collect import Collector
    from phalanx.sources.inputs import Input, find_inputs, from_text
    from phalanx.sources.observations import Match, Observations, Pattern
    from phalanx.sources.survey import FileSurvey, RankSurvey

__all__ = [
    "Collector",
    "FileSurvey",
    "Input",
    "Match",
    "Observations",
    "Pattern",
    "RankSurvey",
    "find_inputs",
    "from_text",
]
# Loaded when asked for: a process that reads traces needs none of what reads logs, which takes a while to load.
_PLACES = {
    "collect": ("Collector",),
    "inputs": ("Input", "find_inputs", "from_text"),
    "observations": ("Match", "Observations", "Pattern"),
    "survey": ("FileSurvey", "RankSurvey"),
}


def __getattr__(name: str) -> object:
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
