"""Checks: each looks through the evidence of all ranks for one kind of fault.

One module here with a function `check(evidence)` that yields `Found` is one check; they are found by scanning. A healthy job
must give nothing: where the evidence does not decide, a check is silent.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module

from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found


@cache
def checks() -> dict[str, Callable[[Evidence], Iterable[Found]]]:
    """Every check by the name of its module."""
    modules = {module.name: import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)}
    return {name: module.check for name, module in modules.items() if hasattr(module, "check")}
