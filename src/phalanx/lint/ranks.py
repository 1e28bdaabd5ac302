"""Does code run on some ranks only? Conditions on the rank, early returns, decorators, callers."""

from __future__ import annotations

import ast

from phalanx.lint.infer import Inference
from phalanx.lint.rank_values import RankValues
from phalanx.lint.tree import Module, Scope

_MARKS = ("rank_zero", "rank0", "main_process", "master_only", "on_main", "zero_rank", "zero_only")


class Ranks(RankValues):
    """Rank dependence of values and of code within one project; answers are remembered."""

    def __init__(self, inference: Inference) -> None:
        super().__init__(inference)
        self._guarded: dict[Scope, bool] = {}
        self._decorators: dict[Scope, ast.expr | None] = {}
        self._keepers: dict[Scope, bool] = {}

    def guard(self, node: ast.AST, scope: Scope, *, callers: bool = True) -> ast.expr | None:
        """The rank condition under which a node runs; None if every rank runs it, as far as is known."""
        module = scope.module
        child = node
        for parent, field in module.ancestors(node):
            test = self._test_above(parent, field, child, module)
            if test is not None:
                return test
            if isinstance(child, ast.stmt) and field in ("body", "orelse", "finalbody"):
                left = self._left_before(child, getattr(parent, field), module)
                if left is not None:
                    return left
            if parent in module.scopes and not isinstance(parent, (ast.Module, ast.ClassDef)):
                inner = module.scopes[parent]
                decorator = self.decorator(inner)
                if decorator is not None:
                    return decorator
                if callers and self._all_callers_guarded(inner):
                    return ast.Constant(value=True)
            child = parent
        return None

    def _test_above(self, parent: ast.AST, field: str, child: ast.AST, module: Module) -> ast.expr | None:
        if isinstance(parent, (ast.If, ast.IfExp)) and field in ("body", "orelse"):
            if self.depends(parent.test, module.scope_of(parent)):
                return parent.test
        elif isinstance(parent, ast.BoolOp):
            for value in parent.values[: parent.values.index(child)] if child in parent.values else []:
                if self.depends(value, module.scope_of(parent)):
                    return value
        elif isinstance(parent, ast.With):
            for item in parent.items:
                text = ast.unparse(item.context_expr)
                if any(
                    mark in text for mark in ("rank_zero_first", "main_process_first", "torch_distributed_zero_first")
                ):
                    return None
        return None

    def _left_before(self, child: ast.stmt, block: list[ast.stmt], module: Module) -> ast.expr | None:
        """`if rank != 0: return` above a statement."""
        for statement in block[: block.index(child)]:
            if not isinstance(statement, ast.If) or statement.orelse:
                continue
            leaves = isinstance(statement.body[-1], (ast.Return, ast.Continue))
            if leaves and self.depends(statement.test, module.scope_of(statement)):
                return statement.test
        return None

    def decorator(self, function: Scope) -> ast.expr | None:
        """A decorator that keeps a function to one rank: `@rank_zero_only`, or one of the project that asks for the rank."""
        if function not in self._decorators:
            self._decorators[function] = None  # recursion proves nothing
            given = getattr(function.node, "decorator_list", [])
            found = (d for d in given if _is_marked(d) or self._calls_on_some(d, function.parent or function))
            self._decorators[function] = next(found, None)
        return self._decorators[function]

    def _calls_on_some(self, decorator: ast.expr, scope: Scope) -> bool:
        """Whether the function that a decorator of the project was given is only called under a rank condition."""
        made = self.inference.symbol(decorator.func if isinstance(decorator, ast.Call) else decorator, scope)
        if made is None or not made.is_function:
            return False
        if made not in self._keepers:
            self._keepers[made] = False  # recursion proves nothing
            calls = [
                (call, made.module.scope_of(call))
                for call in ast.walk(made.node)
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
            ]
            given = [(c, s) for c, s in calls if _is_parameter(c.func, s, self.inference)]
            self._keepers[made] = bool(given) and all(self.guard(c, s, callers=False) is not None for c, s in given)
        return self._keepers[made]

    def _all_callers_guarded(self, function: Scope) -> bool:
        if function in self._guarded:
            return self._guarded[function]
        self._guarded[function] = False  # recursion proves nothing
        calls = self.inference.callers(function)
        found = bool(calls) and all(self.guard(call, scope) is not None for call, scope in calls)
        self._guarded[function] = found
        return found


def _is_parameter(node: ast.expr, scope: Scope, inference: Inference) -> bool:
    found = inference.reaching(node.id, node, scope) if isinstance(node, ast.Name) else []
    return any(binding.kind == "param" for binding, _ in found)


def _is_marked(decorator: ast.expr) -> bool:
    """`@rank_zero_only` and its like, known by their names."""
    text = ast.unparse(decorator).lower()
    return any(mark in text for mark in _MARKS)
