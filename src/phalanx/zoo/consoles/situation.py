"""A situation: one fault that can be played on a stage, with its truth; found by scanning `situations/`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from phalanx.zoo.consoles import situations
from phalanx.zoo.consoles.stage import Stage


@dataclass(frozen=True, slots=True)
class Situation:
    """A fault and its truth. `play` acts it out and returns the culprits (none where no rank is to blame).

    `absence`: the culprit is known only by what it does not print, so a form must show all the others. `nodes`: it
    needs so many. `also`: other symptoms by which it may go, where the classes overlap. `launcher`: it exists under this launcher only. A healthy situation has no symptom.
    """

    name: str
    title: str
    play: Callable[[Stage], tuple[int, ...]]
    symptom: str | None = None
    cause: str | None = None
    fixes: tuple[str, ...] = ()
    absence: bool = False
    nodes: int | None = None
    launcher: str | None = None
    also: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        return self.symptom is None


@cache
def all_situations() -> dict[str, Situation]:
    """Every situation of every module in `situations/`, by name."""
    found: dict[str, Situation] = {}
    for module in pkgutil.iter_modules(situations.__path__):
        for one in importlib.import_module(f"{situations.__name__}.{module.name}").SITUATIONS:
            if one.name in found:
                raise ValueError(f"two situations are called {one.name}")
            found[one.name] = one
    return dict(sorted(found.items()))
