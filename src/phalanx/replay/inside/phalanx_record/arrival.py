"""Does something as soon as a module has been imported, without importing it."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Act = Callable[[ModuleType], None]


def when_imported(name: str, act: Act) -> None:
    """Call `act` with the module, now if it is there already."""
    module = sys.modules.get(name)
    if module is not None:
        act(module)
        return
    sys.meta_path.insert(0, _Finder(name, act))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module as the others would, and has its loader tell when it is done."""

    def __init__(self, name: str, act: Act) -> None:
        self._name, self._act = name, act

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self._act)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """The real loader, with one act behind it; everything else is the real one's."""

    def __init__(self, inner: Any, act: Act) -> None:
        self._inner, self._act = inner, act

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._inner.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        self._act(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def at_first_group(module: ModuleType, begin: Callable[[], None]) -> None:
    """Begin when the first process group is made: before there are no collectives, and PyTorch is imported whole by then."""
    really: Callable[..., Any] = vars(module)["init_process_group"]

    @functools.wraps(really)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        begin()
        return really(*args, **kwargs)

    vars(module)["init_process_group"] = init_process_group
