"""Runs something once a module has been imported, for libraries that have no other way to be told of us."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


def after_import(name: str, act: Callable[[ModuleType], None]) -> None:
    """Do it now if the module is there, else when the script imports it."""
    if name in sys.modules:
        _quietly(act, sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, act))


def _quietly(act: Callable[[ModuleType], None], module: ModuleType) -> None:
    try:
        act(module)
    except Exception:  # an import of the user's must never fail for our sake
        return


class _Finder:
    """Finds the module as everybody else would, and notes when its code has run."""

    def __init__(self, name: str, act: Callable[[ModuleType], None]) -> None:
        self._name, self._act = name, act

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        loader = spec.loader if spec is not None else None
        if loader is not None and hasattr(loader, "exec_module"):
            run, act = loader.exec_module, self._act

            def run_and_act(module: ModuleType) -> None:
                run(module)
                _quietly(act, module)

            loader.exec_module = run_and_act  # type: ignore[method-assign]
        return spec
