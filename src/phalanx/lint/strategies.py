"""TensorFlow's strategies: scopes, functions that replicas run, and the chain of methods that made a data set."""

from __future__ import annotations

import ast

from phalanx.lint.context import Calls, Context
from phalanx.lint.tree import Scope

_MULTI = (
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "TPUStrategy",
    "CentralStorageStrategy",
)
MODELS = frozenset({"keras.Sequential", "keras.Model"})


def multi_device(context: Context) -> bool:
    """Whether the file itself makes a strategy for several devices."""
    return bool(context.calls(*(f"tensorflow.distribute.{name}" for name in _MULTI)))


def in_scope(node: ast.AST, context: Context) -> bool:
    """Whether a node is within `with strategy.scope():`, or in a function, whose callers may be."""
    for parent, _ in context.module.ancestors(node):
        if isinstance(parent, ast.With) and any(".scope(" in ast.unparse(item.context_expr) for item in parent.items):
            return True
    return False


def replica_functions(context: Context) -> set[ast.AST]:
    """Functions of this file that `strategy.run` runs."""
    found: set[ast.AST] = set()
    for call, scope in context.methods("run", "experimental_run_v2"):
        function = context.inference.symbol(call.args[0], scope) if call.args else None
        is_strategy = "strategy" in ast.unparse(call.func).lower() or "distribute" in context.name(call.func, scope)
        if is_strategy and function is not None and function.is_function:
            found.add(function.node)
            found |= {inner.node for inner in _called_by(function, context)}
    return found


def _called_by(function: Scope, context: Context) -> list[Scope]:
    """Functions of this file that a function calls."""
    calls = [(call, scope) for call, scope in context.module.calls if scope.function is function]
    inner = (context.inference.symbol(call.func, scope) for call, scope in calls)
    return [item for item in inner if item is not None and item.is_function and item.module is context.module]


_LONGEST = 30  # methods of one chain


def dataset_calls(node: ast.expr, context: Context, scope: Scope) -> Calls:
    """The method calls that made a data set, last first; empty if its beginning is not a `tf.data` source."""
    found: Calls = []
    for _ in range(_LONGEST):
        node, scope = context.origin(node, scope)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return []
        found.append((node, scope))
        name = context.name(node.func, scope)
        if name.startswith("tensorflow.data.") and name.count(".") <= 3 and "experimental" not in name:
            return found
        node = node.func.value
    return []


def dataset_chain(node: ast.expr, context: Context, scope: Scope) -> set[str]:
    """Names of the methods that made a data set; empty if unknown."""
    return {getattr(call.func, "attr", "") for call, _ in dataset_calls(node, context, scope)}
