"""Tells when modules of interest are imported: before, or once they are whole. An import of the user's never fails for our sake."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


class Arrivals:
    """An import hook that finds nothing by itself. `before` is called when a module is first asked for, `after` when it has been executed."""

    def __init__(self, before: dict[str, Callable[[], None]], after: dict[str, Callable[[ModuleType], None]]) -> None:
        self._before, self._after = before, after

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """None, so that the others are asked; or what they find, with a loader that tells us when it is through."""
        early = self._before.pop(name, None)
        if early is not None:
            try:
                early()
            except Exception:  # a job without our watch is better than one that cannot import its framework
                pass
        late = self._after.pop(name, None)
        if late is None:
            return None
        try:
            return self._found_by_others(name, path, target, late)
        except Exception:  # then it is imported as if we were not there
            return None

    def _found_by_others(self, name: str, path: Any, target: Any, late: Callable[[ModuleType], None]) -> Any:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, late)
                return spec
        return None


class _Loader:
    """The module's own loader, for as long as it is needed."""

    def __init__(self, real: Any, late: Callable[[ModuleType], None]) -> None:
        self._real, self._late = real, late

    def create_module(self, spec: Any) -> Any:
        return self._real.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._real
        self._real.exec_module(module)
        try:
            self._late(module)
        except Exception:
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
