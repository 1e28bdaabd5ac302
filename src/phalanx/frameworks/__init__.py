"""What tells one framework from another. One file here is one framework; it is found by scanning.

A framework module has `NAME`, `SIGNS` (an expression for what only it prints, paths and variables included) and
`OUTRANKS`: names of frameworks whose signs its own jobs also show.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast


class Framework(Protocol):
    """What a framework module offers."""

    NAME: str
    SIGNS: re.Pattern[str]
    OUTRANKS: tuple[str, ...]


@cache
def load_frameworks() -> dict[str, Framework]:
    """Every framework of this folder, by name."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found = [cast(Framework, module) for module in modules if hasattr(module, "SIGNS")]
    return {framework.NAME: framework for framework in found}


def recognise(counts: Mapping[str, int]) -> str | None:
    """The framework of a job by how often each one's signs were seen; wrappers win over what they wrap."""
    frameworks = load_frameworks()
    seen = {name: counts.get(name, 0) for name in frameworks if counts.get(name, 0) > 0}
    hidden = {other for name in seen for other in frameworks[name].OUTRANKS if seen.get(other, 0) <= 20 * seen[name]}
    left = {name: count for name, count in seen.items() if name not in hidden}
    return max(left, key=lambda name: (left[name], name), default=None)
