"""The files of one project: loads what is imported within it and finds the function or class behind a name."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

from phalanx.lint.names import FRAMEWORKS
from phalanx.lint.source import UnreadableError, read_source
from phalanx.lint.tree import Binding, Module, Scope

_FOREIGN = frozenset({*FRAMEWORKS, "numpy", "torchvision", "pytorch_lightning", "tf_keras", *sys.stdlib_module_names})
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_DEPTH = 6  # re-exports that are followed
_USERS = 4  # scripts of which a module's program is made


class Project:
    """Modules by file, each parsed once. Import cycles are harmless: a module is only indexed, never executed."""

    def __init__(self) -> None:
        self.modules: dict[Path, Module | UnreadableError] = {}
        self._found: dict[tuple[Path, str], tuple[Path, str] | None] = {}
        self._imports: dict[Module, tuple[Module, ...]] = {}
        self._programs: dict[Module, tuple[Module, ...]] = {}
        self._subclasses: dict[str, list[Scope]] = {}  # by the name of a base, of the first so many modules
        self._indexed = 0
        self.scripts: list[Module] = []  # the files that are started

    def load(self, path: Path) -> Module:
        """The index of a file; raises UnreadableError."""
        known = self.modules.get(path)
        if known is None:
            path = path.absolute()
            known = self.modules.get(path)
        if known is None:
            try:
                source = read_source(path)
                known = Module(source, source.parse(), module_name(path))
            except UnreadableError as error:
                known = error
            except RecursionError:
                known = UnreadableError("expressions are nested too deeply", "source that Python itself can compile")
            self.modules[path] = known
        if isinstance(known, UnreadableError):
            raise known
        return known

    def find(self, dotted: str, module: Module) -> Scope | None:
        """The function or class of a dotted name as a module sees it; None for what lies outside of the project."""
        return self._find(dotted, module, _DEPTH)

    def _find(self, dotted: str, module: Module, depth: int) -> Scope | None:
        if depth == 0 or _is_foreign(dotted, module):
            return None
        if dotted.startswith(module.name + "."):
            rest, target = dotted[len(module.name) + 1 :], module
        else:
            place = self._place(dotted, package_root(module.source.path))
            if place is None:
                return None
            try:
                target, rest = self.load(place[0]), place[1]
            except UnreadableError:
                return None
        return self._member(target.scope, rest, target, depth)

    def _member(self, scope: Scope, rest: str, module: Module, depth: int) -> Scope | None:
        name, _, after = rest.partition(".")
        for binding in reversed(scope.bindings.get(name, ())):
            if binding.kind in ("def", "class"):
                inner = module.scopes[binding.node]
                return self._member(inner, after, module, depth) if after else inner
            if binding.kind == "import" and scope is module.scope:
                return self._find(f"{binding.target}.{after}" if after else binding.target, module, depth - 1)
        return None

    def variable(self, dotted: str, module: Module, depth: int = _DEPTH) -> list[tuple[Binding, Scope]]:
        """The assignments of another module's variable, as a module that imports it sees it."""
        if depth == 0 or _is_foreign(dotted, module):
            return []
        place = self._place(dotted, package_root(module.source.path))
        if place is None or not place[1] or "." in place[1]:
            return []
        try:
            target = self.load(place[0])
        except UnreadableError:
            return []
        found: list[tuple[Binding, Scope]] = []
        for binding in reversed(target.scope.bindings.get(place[1], ())):
            if binding.kind == "import":
                return found or self.variable(binding.target, target, depth - 1)
            found.append((binding, target.scope))
        return found

    def subclasses(self, owner: Scope) -> list[Scope]:
        """Classes of the loaded files that name a class as their base."""
        for module in list(self.modules.values())[self._indexed :]:
            for other in module.classes if isinstance(module, Module) else ():
                for base in getattr(other.node, "bases", ()):
                    name = getattr(base, "id", getattr(base, "attr", ""))
                    self._subclasses.setdefault(name, []).append(other)
        self._indexed = len(self.modules)
        return [other for other in self._subclasses.get(getattr(owner.node, "name", ""), ()) if other is not owner]

    def _place(self, dotted: str, root: Path) -> tuple[Path, str] | None:
        key = (root, dotted)
        if key not in self._found:
            self._found[key] = self._search(dotted, root)
        return self._found[key]

    def _search(self, dotted: str, root: Path) -> tuple[Path, str] | None:
        parts = dotted.split(".")
        for count in range(len(parts), 0, -1):
            base = root.joinpath(*parts[:count])
            rest = ".".join(parts[count:])
            for path in (base.with_suffix(".py") if base.name else base, base / "__init__.py"):
                if path in self.modules or path.is_file():
                    return path, rest
        return None

    def imports(self, module: Module) -> tuple[Module, ...]:
        """The module itself and what it imports within the project, near ones first."""
        known = self._imports.get(module)
        if known is None:
            found = [module]
            for current in found:
                for other in self._direct(current):
                    if other not in found:
                        found.append(other)
                if len(found) > 60:
                    break
            known = self._imports[module] = tuple(found)
        return known

    def program(self, module: Module) -> tuple[Module, ...]:
        """The module, what it imports, and what the scripts that use it import: all that runs beside it."""
        known = self._programs.get(module)
        if known is None:
            users = [item for script in self.scripts if module in (item := self.imports(script))]
            found = dict.fromkeys([*self.imports(module), *(m for program in users[:_USERS] for m in program)])
            known = self._programs[module] = tuple(found)
        return known

    def _direct(self, module: Module) -> list[Module]:
        targets = [
            binding.target
            for scope in module.scopes.values()
            for bindings in scope.bindings.values()
            for binding in bindings
            if binding.kind == "import"
        ]
        stars = [
            node.module for node, _ in module.nodes[ast.ImportFrom] if isinstance(node, ast.ImportFrom) and node.module
        ]
        root = package_root(module.source.path)
        found = []
        for target in dict.fromkeys([*targets, *stars]):
            if _is_foreign(target, module):
                continue
            place = self._place(target, root)
            if place is not None:
                try:
                    found.append(self.load(place[0]))
                except UnreadableError:
                    continue
        return found


def _is_foreign(dotted: str, module: Module) -> bool:
    """Whether a name is of a framework, or of another package that only happens to be installed beside a file's own."""
    first = dotted.partition(".")[0]
    is_other = first != module.name.partition(".")[0]
    return first in _FOREIGN or (is_other and package_root(module.source.path).name in _INSTALLED)


def package_root(path: Path) -> Path:
    """The folder from which a file's absolute imports are found: above its outermost package."""
    return _above_package(path.parent)


@cache
def _above_package(folder: Path) -> Path:
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def module_name(path: Path) -> str:
    """The dotted name under which the project imports a file."""
    parts = list(path.relative_to(package_root(path)).with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)
