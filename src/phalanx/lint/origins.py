"""Where a value comes from: the expressions behind a name, a field, an item, a parameter or a call of the project."""

from __future__ import annotations

import ast
from abc import abstractmethod

from phalanx.lint.fields import Bound, Fields
from phalanx.lint.project import Project
from phalanx.lint.syntax import argument_of, default_of, returns
from phalanx.lint.tree import Binding, Scope

Origin = tuple[ast.expr, Scope]
UNKNOWN = ast.Name(id="?", ctx=ast.Load())
_DEPTH = 16
_MOST = 12


class Origins(Fields):
    """Answers for one project. What is not known stands for itself, so a rule sees that it is not known."""

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self._origins: dict[tuple[ast.AST, Scope, tuple[int, ...]], tuple[Origin, ...]] = {}
        self._followed: set[object] = set()

    @abstractmethod
    def handed(self, function: Scope, parameter: str) -> list[Origin]:
        """What callers hand to a parameter."""

    def origins(self, node: ast.expr, scope: Scope, path: tuple[int, ...] = ()) -> tuple[Origin, ...]:
        """The expressions that an expression's value may come from; itself where nothing lies behind it."""
        key = (node, scope, path)
        known = self._origins.get(key)
        if known is not None:
            return known
        if key in self._followed or len(self._followed) > _DEPTH:
            return ((UNKNOWN, scope),)
        self._followed.add(key)
        try:
            found = self._behind(node, scope, path)
        finally:
            self._followed.discard(key)
        own = ((node if not path else UNKNOWN, scope),)
        known = self._origins[key] = tuple(dict.fromkeys(found))[:_MOST] if found else own
        return known

    def origin(self, node: ast.expr, scope: Scope) -> Origin:
        """The only expression that a value comes from; the expression itself if there are several."""
        found = self.origins(node, scope)
        return found[0] if len(found) == 1 and found[0][0] is not UNKNOWN else (node, scope)

    def constant(self, node: ast.AST | None, scope: Scope) -> object:
        """The literal that an expression holds, None if it is not known (or is None)."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.constant(node.operand, scope)
            return -inner if isinstance(inner, (int, float)) else None
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
            return None
        found, where = self.origin(node, scope)
        return self.constant(found, where) if found is not node else None

    def _behind(self, node: ast.expr, scope: Scope, path: tuple[int, ...]) -> list[Origin]:
        if isinstance(node, ast.Name):
            found = self.reaching(node.id, node, scope)
            return [item for b, where in found for item in self._of_binding(b, where, path) or [(node, scope)]]
        if isinstance(node, ast.Attribute):
            return self._of_all(self.fields(node, scope), path)
        if isinstance(node, ast.Subscript):
            return self._of_all(self.items(node, scope), path)
        if isinstance(node, ast.Call):
            return self._of_call(node, scope, path)
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
            return [item for part in parts for item in self.origins(part, scope, path)]
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return list(self.origins(node.value, scope, path))
        if isinstance(node, (ast.Tuple, ast.List)) and path and path[0] < len(node.elts):
            return list(self.origins(node.elts[path[0]], scope, path[1:]))
        return []

    def _of_all(self, bound: list[Bound], path: tuple[int, ...]) -> list[Origin]:
        return [item for binding, where in bound for item in self._of_binding(binding, where, path)]

    def _of_binding(self, binding: Binding, scope: Scope, path: tuple[int, ...]) -> list[Origin]:
        if binding.kind in ("assign", "with") and binding.value is not None:
            return list(self.origins(binding.value, scope, (*binding.path, *path)))
        if binding.kind == "param" and isinstance(binding.node, ast.arg):
            return self._of_parameter(binding.node.arg, scope, path)
        if binding.kind == "import":
            found = self.project.variable(binding.target, scope.module)
            return [item for b, where in found for item in self._of_binding(b, where, path)]
        return [(UNKNOWN, scope)] if binding.kind == "augment" else []

    def _of_parameter(self, name: str, function: Scope, path: tuple[int, ...]) -> list[Origin]:
        found = [item for given, where in self.handed(function, name) for item in self.origins(given, where, path)]
        default = default_of(function, name)
        if default is not None and (not found or any(argument_of(c, function, name) is None for c, _ in self.callers(function))):  # fmt: skip
            found += self.origins(default, function, path)
        return found or [(UNKNOWN, function)]

    def _of_call(self, node: ast.Call, scope: Scope, path: tuple[int, ...]) -> list[Origin]:
        symbol = self.symbol(node.func, scope)
        if symbol is None or not symbol.is_function:
            return self._of_get(node, scope, path)
        found: list[Origin] = []
        for result in returns(symbol):
            if isinstance(result, ast.Name) and not path:
                bound = symbol.bindings.get(result.id, [])
                given = argument_of(node, symbol, result.id)
                if len(bound) == 1 and bound[0].kind == "param" and given is not None:
                    found += self.origins(given, scope)
                    continue
            found += self.origins(result, symbol, path)
        return found

    def _of_get(self, node: ast.Call, scope: Scope, path: tuple[int, ...]) -> list[Origin]:
        """`config.get("backend", "nccl")` of a dictionary in the program."""
        func = node.func
        if not isinstance(func, ast.Attribute) or func.attr != "get" or not node.args or not isinstance(node.args[0], ast.Constant):  # fmt: skip
            return []
        item = ast.copy_location(ast.Subscript(value=func.value, slice=node.args[0], ctx=ast.Load()), node)
        return self._of_all(self.items(item, scope), path)
