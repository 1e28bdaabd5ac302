"""Functions as values: which functions of the project may a call run, through variables, lists, parameters and `partial`?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.origins import Origin, Origins
from phalanx.lint.project import Project
from phalanx.lint.tree import Module, Scope

_ADDS = frozenset({"append", "add", "insert"})
PARTIAL = "functools.partial"
_VIEWS = frozenset({"values", "items"})


class Callables(Origins):
    """Answers for one project; every answer is remembered."""

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self._callees: dict[tuple[ast.AST, Scope], tuple[Scope, ...]] = {}
        self._added: dict[Module, dict[str, list[tuple[ast.expr, ast.expr, Scope]]]] = {}

    def callees(self, func: ast.expr, scope: Scope) -> tuple[Scope, ...]:
        """The functions that calling an expression may run; a class's constructor for the class."""
        key = (func, scope)
        known = self._callees.get(key)
        if known is None:
            self._callees[key] = ()  # a cycle adds nothing
            found = dict.fromkeys(self._look(func, scope))
            known = self._callees[key] = tuple(found)
        return known

    def _look(self, func: ast.expr, scope: Scope) -> Iterator[Scope]:
        symbol = scope.module.scopes.get(func) or self.symbol(func, scope)
        if symbol is not None and isinstance(symbol.node, ast.ClassDef):
            symbol = self.member(symbol, "__init__")
        if symbol is not None:
            yield symbol
        elif isinstance(func, ast.Call) and func.args and self.dotted(func.func, scope) == PARTIAL:
            yield from self.callees(func.args[0], scope)
        elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id != "self":
            for made, where in self._looped(func.value, scope):
                owners = self._owners(made, where)
                yield from (method for owner in owners if (method := self.member(owner, func.attr)) is not None)
        elif isinstance(func, (ast.Name, ast.Subscript)) or getattr(getattr(func, "value", None), "id", "") == "self":
            for made, where in self._handed_on(func, scope):
                is_function = isinstance(made, (ast.Name, ast.Attribute, ast.Lambda, ast.Call)) and made is not func
                yield from self.callees(made, where) if is_function else ()

    def held(self, func: ast.expr, scope: Scope) -> list[Origin]:
        """What is called: behind a variable, or in a table (`MODELS[name]`, `MODELS.get(name)`)."""
        if isinstance(func, ast.Call) and getattr(func.func, "attr", "") == "get" and isinstance(func.func, ast.Attribute):  # fmt: skip
            return list(self.elements(func.func.value, scope))
        return list(self._handed_on(func, scope)) if isinstance(func, (ast.Name, ast.Subscript)) else []

    def _handed_on(self, func: ast.expr, scope: Scope) -> Iterator[Origin]:
        """What a variable, a loop's variable or an entry of a table stands for."""
        if isinstance(func, ast.Subscript):
            yield from self.elements(func.value, scope) if not isinstance(func.slice, ast.Constant) else ()
        looped = list(self._looped(func, scope))
        yield from looped or self.origins(func, scope)

    def _looped(self, node: ast.expr, scope: Scope) -> Iterator[Origin]:
        """The elements that a loop's variable takes."""
        bound = self.reaching(node.id, node, scope) if isinstance(node, ast.Name) else []
        for binding, where in bound:
            if binding.kind == "for" and binding.value is not None:
                yield from self.elements(binding.value, where)

    def elements(self, node: ast.expr, scope: Scope) -> Iterator[Origin]:
        """What a list or table may hold: what it is written with, and what is added to it under the same name."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            node = node.func.value
        for made, where in self.origins(node, scope):
            held = made.values if isinstance(made, ast.Dict) else getattr(made, "elts", [])
            yield from ((item, where) for item in held)
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        for module in self.project.program(scope.module) if name else ():
            for container, item, where in self._additions(module).get(name, ()):
                if self._is_same(container, where, node, scope):
                    yield item, where

    def _additions(self, module: Module) -> dict[str, list[tuple[ast.expr, ast.expr, Scope]]]:
        """`container.append(item)` of a file, by the container's last name."""
        found = self._added.get(module)
        if found is None:
            found = self._added[module] = {}
            for call, scope in module.calls:
                if isinstance(call.func, ast.Attribute) and call.func.attr in _ADDS and call.args:
                    held = call.func.value
                    name = held.attr if isinstance(held, ast.Attribute) else getattr(held, "id", "")
                    found.setdefault(name, []).append((held, call.args[-1], scope))
        return found

    def _is_same(self, first: ast.expr, scope: Scope, second: ast.expr, other: Scope) -> bool:
        """The same variable of a scope, or the same field of a class."""
        if isinstance(first, ast.Name) and isinstance(second, ast.Name):
            bound = [self.reaching(n.id, n, s) for n, s in ((first, scope), (second, other))]
            return bool(bound[0]) and bool({where for _, where in bound[0]} & {where for _, where in bound[1]})
        if isinstance(first, ast.Attribute) and isinstance(second, ast.Attribute):
            return bool(self._owners(first.value, scope) & self._owners(second.value, other))
        return False

    def _owners(self, base: ast.expr, scope: Scope) -> set[Scope]:
        if getattr(base, "id", "") == "self":
            own = self.owner_of(scope)
            return {own} if own is not None else set()
        made = ((self.project.find(v.type, v.scope.module)) for v in self.values(base, scope))
        return {owner for owner in made if owner is not None}
