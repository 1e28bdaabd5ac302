"""What names mean: dotted names of libraries, functions and classes of the project, and the bindings that reach a node."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from dataclasses import dataclass

from phalanx.lint.names import canonical
from phalanx.lint.project import Project
from phalanx.lint.syntax import bindings_before, qualified
from phalanx.lint.tree import Binding, Scope

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
        if binding.kind == "assign" and not binding.path and isinstance(binding.value, (ast.Name, ast.Attribute)):
            return self.dotted(binding.value, where)
        return None

    def _attribute(self, node: ast.Attribute, scope: Scope) -> str | None:
        base = self.dotted(node.value, scope)
        if base is not None:
            return canonical(f"{base}.{node.attr}")
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            method = self.method(node.attr, scope)
            if method is not None:
                return qualified(method)
        for value in self.values(node.value, scope):
            if value.type:
                return f"{value.type}.{node.attr}"
        return None

    def method(self, name: str, scope: Scope) -> Scope | None:
        """`self.name` within a method: the method of this class or of a base within the project."""
        owner = self.owner_of(scope)
        return self.member(owner, name) if owner is not None else None

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
        name = self.dotted(node, scope)
        if name is None:
            return None
        if isinstance(node, ast.Name):
            for binding, where in self.reaching(node.id, node, scope)[:1]:
                if binding.kind in ("def", "class"):
                    return where.module.scopes[binding.node]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            return self.method(node.attr, scope)
        found = self.project.find(name, scope.module)
        if found is None and isinstance(node, ast.Attribute):
            owner = self.project.find(name.rpartition(".")[0], scope.module)
            if owner is not None and isinstance(owner.node, ast.ClassDef):
                return self.member(owner, node.attr)
        return found

    # Fields

    def owner_of(self, scope: Scope) -> Scope | None:
        """The class in whose method code is, that of a function within a method too."""
        function = scope.function
        while function is not None and function.owner is None:
            function = function.parent.function if function.parent is not None else None
        return function.owner if function is not None else None

    def fields(self, node: ast.Attribute, scope: Scope) -> list[tuple[Binding, Scope]]:
        """What may have been assigned to `self.x`, `trainer.x` or `args.x`."""
        base = node.value
        if not isinstance(base, ast.Name):
            return []
        if base.id == "self":
            owner = self.owner_of(scope)
            return self.fields_of(owner, node.attr) if owner is not None else []
        found = list(scope.module.fields.get((base.id, node.attr), ()))
        for value in self.values(base, scope):
            call = value.node
            owner = self.symbol(call.func, value.scope) if isinstance(call, ast.Call) else None
            if owner is not None and isinstance(owner.node, ast.ClassDef):
                found += self.fields_of(owner, node.attr)
        return found

    def fields_of(self, owner: Scope, name: str, depth: int = 5) -> list[tuple[Binding, Scope]]:
        """Assignments of `self.name` in a class and in its bases within the project."""
        found = list(owner.module.self_fields.get(owner.node, {}).get(name, ()))
        if found or not depth or owner.parent is None or not isinstance(owner.node, ast.ClassDef):
            return found
        bases = (self.symbol(base, owner.parent) for base in owner.node.bases)
        return [item for base in bases if base is not None for item in self.fields_of(base, name, depth - 1)]

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
