"""Engines that start agents on nodes. One file here is one engine; third parties add one by an entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from types import ModuleType
from typing import cast

from phalanx.backends.backend import Backend, BackendError

GROUP = "phalanx.backends"


def load_backend(name: str) -> Backend:
    """The engine of this name. Raises BackendError where there is none, or where two claim the name."""
    own = [module.name for module in iter_modules(__path__)]
    modules = {path: import_module(path) for path in (f"{__name__}.{one}" for one in own)}
    found = {path: module for path, module in modules.items() if getattr(module, "NAME", None) == name}
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            found[f"{entry.value} ({_owner(entry)})"] = _load(entry)
    if len(found) > 1:
        raise BackendError(
            f"two backends are called {name}: {' and '.join(sorted(found))}; remove or rename one of them"
        )
    if not found:
        raise BackendError(f"no backend is called {name}; there are {', '.join(backend_names())}")
    return cast(Backend, next(iter(found.values())))


def backend_names() -> list[str]:
    """The names of all engines that there are."""
    own = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    named = {str(module.NAME) for module in own if hasattr(module, "NAME")}
    return sorted(named | {entry.name for entry in entry_points(group=GROUP)})


def check_options(backend: Backend, options: Mapping[str, object]) -> None:
    """Refuse what the backend does not know. Raises BackendError."""
    unknown = sorted(options.keys() - backend.OPTIONS.keys())
    if unknown:
        known = ", ".join(f"{name} ({what})" for name, what in backend.OPTIONS.items()) or "none"
        raise BackendError(f"{backend.NAME} does not know {', '.join(unknown)}; its options: {known}")


def can_shrink(backend: Backend) -> bool:
    """Whether a job on this engine can be asked for again without some of its nodes."""
    return hasattr(backend, "without")


def without_nodes(backend: Backend, options: Mapping[str, object], nodes: Sequence[str]) -> Mapping[str, object]:
    """The options for a job that is to do without these nodes; for engines that can shrink."""
    return cast(Mapping[str, object], backend.without(options, tuple(nodes)))  # type: ignore[attr-defined]


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an installed package"


def _load(entry: EntryPoint) -> ModuleType:
    try:
        return cast(ModuleType, entry.load())
    except Exception as error:
        raise BackendError(f"the backend {entry.name} of {_owner(entry)} cannot be loaded: {error!r}") from error
