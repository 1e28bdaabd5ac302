"""Does a value come from this rank's own batch? Losses, gradients and what is computed from them, unless reduced."""

from __future__ import annotations

import ast

from phalanx.lint.collectives import Collectives, calls_in
from phalanx.lint.infer import Inference
from phalanx.lint.syntax import position
from phalanx.lint.tree import Scope

_DEPTH = 8
_IN_PLACE = frozenset({"all_reduce", "broadcast", "allreduce_", "broadcast_", "all_gather", "reduce"})


class LocalData:
    """Answers for one project. What every rank agrees on (results of collectives) is not local."""

    def __init__(self, inference: Inference, collectives: Collectives) -> None:
        self.inference, self.collectives = inference, collectives
        self._busy: set[object] = set()
        self._known: dict[object, bool] = {}
        self._training: dict[Scope, bool] = {}
        self._targets: dict[Scope, set[str]] = {}
        self._reduced: dict[Scope, dict[str, list[ast.Call]]] = {}

    def depends(self, node: ast.AST, scope: Scope) -> bool:
        """Whether an expression holds a value of this rank's own data; whether there is one at all is no such value."""
        if isinstance(node, ast.BoolOp):
            return any(self.depends(part, scope) for part in node.values)
        if isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return False
        if self._reduces(node, scope):
            return False
        names = [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        gradients = any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(node))
        return gradients or any(self._local(name, scope) for name in names)

    def _local(self, name: ast.Name, scope: Scope) -> bool:
        key = (name.id, position(name), scope)
        known = self._known.get(key)
        if known is None:
            if key in self._busy or len(self._busy) > _DEPTH or self._is_reduced(name, scope):
                return False
            known = self._known[key] = self._look(name, scope, key)
        return known

    def _look(self, name: ast.Name, scope: Scope, key: object) -> bool:
        self._busy.add(key)
        try:
            for binding, where in self.inference.reaching(name.id, name, scope):
                if binding.kind not in ("assign", "augment") or binding.value is None:
                    continue
                if self._reduces(binding.value, where):
                    continue
                if name.id in self._losses(where) or self._trains(binding.value, where):
                    return True
                if self.depends(binding.value, where):
                    return True
        finally:
            self._busy.discard(key)
        return False

    def _losses(self, scope: Scope) -> set[str]:
        """Names on which `.backward()` is called."""
        found = self._targets.get(scope)
        if found is None:
            found = self._targets[scope] = set()
            for call, where in scope.module.calls:
                if where is scope and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
                    target = call.args[0] if call.args else call.func.value  # `engine.backward(loss)`
                    found |= {target.id} if isinstance(target, ast.Name) else set()
        return found

    def _trains(self, value: ast.expr, scope: Scope) -> bool:
        """A call of a function of the project that runs a backward pass and returns what it saw."""
        function = self.inference.symbol(value.func, scope) if isinstance(value, ast.Call) else None
        if function is None or not function.is_function:
            return False
        known = self._training.get(function)
        if known is None:
            calls = (call for node in function.body for call in calls_in(node))
            known = self._training[function] = any(getattr(call.func, "attr", "") == "backward" for call in calls)
        return known

    def _reduces(self, node: ast.AST, scope: Scope) -> bool:
        """Whether an expression holds a call that reaches a collective: its result is agreed on."""
        return any(
            o.name not in ("backward", "forward of the sharded model") for o in self.collectives.reached([node], scope)
        )

    def _is_reduced(self, name: ast.Name, scope: Scope) -> bool:
        """Whether a collective changed the variable in place before this use."""
        here = position(name)
        return any(position(call) < here for call in self._reducers(scope).get(name.id, ()))

    def _reducers(self, scope: Scope) -> dict[str, list[ast.Call]]:
        """Calls of a scope that reduce their first argument in place, by the argument's name."""
        found = self._reduced.get(scope)
        if found is None:
            found = self._reduced[scope] = {}
            for call, where in scope.module.calls:
                root = _root(call.args[0]) if where is scope and call.args else ""
                if root and any(o.name in _IN_PLACE for o in self.collectives.reached([call], where)):
                    found.setdefault(root, []).append(call)
        return found


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
