"""What has to go with a function: which framework it speaks, which modules travel whole, which files."""

from __future__ import annotations

import site
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from phalanx.frameworks.launching import load_launchable
from phalanx.run.script import recognise_script

# Where a function names several, the one that carries the ranks.
_ORDER = ("horovod", "keras", "tensorflow", "jax", "torch")
# Clusters put installed packages on PYTHONPATH; such folders are not below this interpreter's own.
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def framework_of(function: Callable[..., Any]) -> str:
    """The framework that a function speaks, by the modules that it names; else by its file; else torch, whose variables
    disturb nobody."""
    known = {top: name for name, one in load_launchable().items() for top in one.IMPORTS}
    code = getattr(function, "__code__", None)
    names = set(_names(code)) if isinstance(code, CodeType) else set()
    globals_of: dict[str, Any] = getattr(function, "__globals__", {})
    tops = {name.partition(".")[0] for name in names}
    tops |= {
        module.__name__.partition(".")[0] for name in names if isinstance(module := globals_of.get(name), ModuleType)
    }
    found = {known[top] for top in tops if top in known}
    if not found and (file := globals_of.get("__file__")) and Path(file).suffix == ".py":
        seen = recognise_script(Path(file)).framework
        found = {seen} if seen else set()
    return next((name for name in _ORDER if name in found), "torch")


def _names(code: CodeType) -> Iterator[str]:
    """Every name that a function uses, its inner functions' included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            yield constant  # import_module("torch")


def search_path() -> list[str]:
    """Where modules are looked for here, as whole paths. What belongs to this interpreter is left out: the ranks' own has
    its own library and packages, and ours before them would be another release's."""
    own = _own_folders()
    found = [Path(entry or ".").absolute() for entry in sys.path if not entry or Path(entry).is_dir()]
    return [str(path) for path in found if not any(path.resolve().is_relative_to(folder) for folder in own)]


def _own_folders() -> list[Path]:
    """Where this interpreter's library and the packages that are installed for it lie."""
    paths = {*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()}
    return [*(Path(path).resolve() for path in paths), Path(sys.base_prefix).resolve() / "lib"]


def modules_to_copy(root: Path) -> list[ModuleType]:
    """Loaded modules that a node will not find: neither installed nor below the project that travels."""
    kept = [root.resolve(), *_own_folders(), Path(sys.prefix).resolve()]
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if (
            not file
            or not str(file).endswith(".py")
            or name.partition(".")[0] in ("phalanx", "__main__", "__mp_main__")
        ):
            continue
        path = Path(file).resolve()
        if _INSTALLED.isdisjoint(path.parts) and not any(path.is_relative_to(folder) for folder in kept):
            found.append(module)
    return found
