"""What names mean: dotted names of libraries, functions and classes of the project, and the bindings that reach a node."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from dataclasses import dataclass

from phalanx.lint.names import canonical
from phalanx.lint.project import Project
from phalanx.lint.syntax import bindings_before, qualified
from phalanx.lint.tree import Binding, Scope

_LIBRARIES = ("transformers.", "lightning.", "accelerate.")
_MOST = 8  # bindings of one name that are told apart


@dataclass(frozen=True, slots=True)
class Value:
    """One thing an expression may be: the class, the expression that made it, and what happened to it on the way."""

    type: str
    node: ast.expr
    scope: Scope
    tags: frozenset[str] = frozenset()


class Names(ABC):
    """Answers for one project; every answer is remembered."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._dotted: dict[tuple[ast.AST, Scope], str | None] = {}
        self._symbols: dict[tuple[ast.AST, Scope], Scope | None] = {}
        self._busy: set[object] = set()

    @abstractmethod
    def values(self, node: ast.expr, scope: Scope, path: tuple[int, ...] = ()) -> tuple[Value, ...]:
        """What an expression may be: the class of an object tells which method a name means."""

    def dotted(self, node: ast.AST, scope: Scope) -> str | None:
        """The canonical dotted name of a name or attribute; methods as `class.method`. None if unknown."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        key = (node, scope)
        if key not in self._dotted:
            self._dotted[key] = None  # a cycle is unknown
            self._dotted[key] = self._name(node, scope) if isinstance(node, ast.Name) else self._attribute(node, scope)
        return self._dotted[key]

    def _name(self, node: ast.Name, scope: Scope) -> str | None:
        found = self.reaching(node.id, node, scope)
        if not found:
            return f"builtins.{node.id}" if node.id.islower() or node.id.endswith(("Error", "Exit")) else None
        binding, where = found[0]
        if binding.kind == "import":
            return canonical(binding.target)
        if binding.kind in ("def", "class"):
            return qualified(where.module.scopes[binding.node])
        if binding.kind == "assign" and not binding.path:
            if isinstance(binding.value, ast.Lambda):
                return f"{where.module.name}.<lambda>"
            return self.dotted(binding.value, where) if isinstance(binding.value, (ast.Name, ast.Attribute)) else None
        if node.id == "cls" and where.owner is not None:
            return qualified(where.owner)
        return None

    def _attribute(self, node: ast.Attribute, scope: Scope) -> str | None:
        base = self.dotted(node.value, scope)
        if base is not None:
            return canonical(f"{base}.{node.attr}")
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            method = self.method(node.attr, scope)
            if method is not None:
                return qualified(method)
            if node.value.id == "self":
                return self._inherited(node.attr, scope)
        for value in self.values(node.value, scope):
            if value.type:
                return f"{value.type}.{node.attr}"
        return None

    def _inherited(self, name: str, scope: Scope) -> str | None:
        """`self.name` that a trainer library's base class defines."""
        owner = self.owner_of(scope)
        if owner is None or name in owner.module.self_fields.get(owner.node, {}):
            return None
        base = next((base for base in sorted(self.bases(owner)) if base.startswith(_LIBRARIES)), None)
        return f"{base}.{name}" if base is not None else None

    def method(self, name: str, scope: Scope) -> Scope | None:
        """`self.name` within a method: that of this class, of a base, or of a subclass that fills it in."""
        owner = self.owner_of(scope)
        if owner is None:
            return None
        found = self.member(owner, name)
        if found is None or _is_abstract(found):
            filled = (self.member(other, name, 0) for other in self.project.subclasses(owner))
            return next((item for item in filled if item is not None), found)
        return found

    def member(self, owner: Scope, name: str, depth: int = 5) -> Scope | None:
        """A method of a class, looked for in its bases too."""
        for binding in owner.bindings.get(name, ()):
            if binding.kind == "def":
                return owner.module.scopes[binding.node]
        if depth and isinstance(owner.node, ast.ClassDef) and owner.parent is not None:
            for base in owner.node.bases:
                found = self.symbol(base, owner.parent)
                if found is not None and isinstance(found.node, ast.ClassDef):
                    inherited = self.member(found, name, depth - 1)
                    if inherited is not None:
                        return inherited
        return None

    def bases(self, owner: Scope, depth: int = 5) -> set[str]:
        """Canonical names of all base classes, those outside of the project included."""
        found: set[str] = set()
        if isinstance(owner.node, ast.ClassDef) and owner.parent is not None:
            for base in owner.node.bases:
                name = self.dotted(base, owner.parent)
                found.update([name] if name else [])
                inner = self.symbol(base, owner.parent)
                if inner is not None and depth and inner is not owner:
                    found |= self.bases(inner, depth - 1)
        return found

    def symbol(self, node: ast.AST, scope: Scope) -> Scope | None:
        """The project's function or class that an expression names."""
        key = (node, scope)
        if key not in self._symbols:
            self._symbols[key] = None  # a cycle is unknown
            self._symbols[key] = self._symbol(node, scope)
        return self._symbols[key]

    def _symbol(self, node: ast.AST, scope: Scope) -> Scope | None:
        if isinstance(node, ast.Attribute) and _is_super(node.value):
            return self._of_super(node.attr, scope)
        name = self.dotted(node, scope)
        if name is None:
            return self._instance_call(node, scope)
        if isinstance(node, ast.Name):
            for binding, where in self.reaching(node.id, node, scope)[:1]:
                if binding.kind in ("def", "class"):
                    return where.module.scopes[binding.node]
                if isinstance(binding.value, ast.Lambda) and binding.kind == "assign":
                    return where.module.scopes[binding.value]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            return self.method(node.attr, scope)
        found = self.project.find(name, scope.module)
        if found is None and isinstance(node, ast.Attribute):
            owner = self.project.find(name.rpartition(".")[0], scope.module)
            if owner is not None and isinstance(owner.node, ast.ClassDef):
                return self.member(owner, node.attr)
        return found if found is not None else self._instance_call(node, scope)

    def _instance_call(self, node: ast.AST, scope: Scope) -> Scope | None:
        """`stopper(loss)` of an object of the project: its class's `__call__`."""
        for value in self.values(node, scope) if isinstance(node, (ast.Name, ast.Attribute)) else ():
            owner = self.project.find(value.type, value.scope.module) if isinstance(value.node, ast.Call) else None
            if owner is not None and isinstance(owner.node, ast.ClassDef):
                return self.member(owner, "__call__")
        return None

    def _of_super(self, name: str, scope: Scope) -> Scope | None:
        owner = self.owner_of(scope)
        if owner is None or owner.parent is None or not isinstance(owner.node, ast.ClassDef):
            return None
        bases = (self.symbol(base, owner.parent) for base in owner.node.bases)
        found = (self.member(base, name) for base in bases if base is not None and base is not owner)
        return next((item for item in found if item is not None), None)

    def owner_of(self, scope: Scope) -> Scope | None:
        """The class in whose method code is, that of a function within a method too."""
        function = scope.function
        while function is not None and function.owner is None:
            function = function.parent.function if function.parent is not None else None
        return function.owner if function is not None else None

    # Reaching assignments

    def reaching(self, name: str, node: ast.AST, scope: Scope) -> list[tuple[Binding, Scope]]:
        """The bindings that can give a name its value at a node, the likeliest first."""
        where: Scope | None = scope
        is_own = True
        while where is not None:
            if where is scope or not isinstance(where.node, ast.ClassDef):
                found = where.bindings.get(name)
                if found:
                    chosen = bindings_before(found, node, where) if is_own else list(reversed(found))
                    return [(binding, where) for binding in chosen[:_MOST]]
                is_own = is_own and not where.is_function
            where = where.parent
        return []


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "super"


def _is_abstract(function: Scope) -> bool:
    """A method that subclasses fill in: `...`, `pass` or `raise NotImplementedError` after a docstring."""
    rest = [item for item in function.body if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]
    return all(isinstance(item, (ast.Pass, ast.Raise)) for item in rest)
