"""Data loaders: which one a loop iterates over, and whether its data are split between ranks."""

from __future__ import annotations

import ast

from phalanx.lint.context import Context
from phalanx.lint.resolve import Value
from phalanx.lint.tree import Scope

LOADER = "torch.utils.data.DataLoader"
_PASSES = frozenset(
    {
        "builtins.enumerate",
        "builtins.iter",
        "tqdm.tqdm",
        "tqdm.auto.tqdm",
        "builtins.zip",
        "tqdm.trange",
        "itertools.islice",
    }
)
_SPLIT = ("shard", "rank", "subset", "partition", "distributed", "world")
_CHAIN = frozenset({"map", "filter", "remove_columns", "rename_column", "with_format", "set_format", "select_columns", "shuffle", "train_test_split", "flatten"})  # fmt: skip
_DEPTH = 8


def loaders_of(node: ast.expr, context: Context, scope: Scope) -> list[Value]:
    """The loaders that an iterated expression may be, through `enumerate` and progress bars."""
    while isinstance(node, ast.Call) and node.args and context.name(node.func, scope) in _PASSES:
        node = node.args[0]
    return [value for value in context.values(node, scope) if value.type == LOADER and "prepared" not in value.tags]


def scope_of_value(node: ast.AST, context: Context) -> Scope:
    """The scope in which a call of this file was made."""
    return context.module.scope_of(node)


def is_sharded(call: ast.Call, scope: Scope, context: Context) -> bool:
    """Whether a loader gives ranks different data, as far as can be seen; in doubt yes."""
    given = {item.arg: item.value for item in call.keywords}
    if (
        None in given
        or any(name in given for name in ("sampler", "batch_sampler", "generator", "worker_init_fn"))
        or len(call.args) > 3
    ):
        return True
    data = call.args[0] if call.args else given.get("dataset")
    return data is None or _differs(data, scope, context, _DEPTH)


def is_stream(call: ast.Call, scope: Scope, context: Context) -> bool:
    """Whether a loader reads an iterable data set of the project, for which there are no samplers."""
    for value in context.values(call.args[0], scope) if call.args else ():
        owner = context.inference.symbol(value.node.func, value.scope) if isinstance(value.node, ast.Call) else None
        if owner is not None and "torch.utils.data.IterableDataset" in context.inference.bases(owner):
            return True
    return False


def _differs(node: ast.expr, scope: Scope, context: Context, depth: int) -> bool:
    """Whether a data set is, or may be, another on every rank."""
    if not depth or any(word in ast.unparse(node).lower() for word in _SPLIT):
        return True
    if any(context.ranks.depends(item, scope) for item in ast.walk(node) if isinstance(item, ast.expr)):
        return True
    if isinstance(node, ast.Call):
        return _made_by(node, scope, context, depth)
    if isinstance(node, ast.Name):
        found = context.inference.reaching(node.id, node, scope)
        if not found:
            return True
        for binding, where in found:
            if binding.kind == "param":
                handed = context.inference.handed(where, node.id)
                if not handed or any(_differs(given, at, context, depth - 1) for given, at in handed):
                    return True
            elif (
                binding.kind != "assign" or binding.value is None or _differs(binding.value, where, context, depth - 1)
            ):
                return True
        return False
    if isinstance(node, ast.Subscript):
        return _differs(node.value, scope, context, depth - 1)
    if isinstance(node, ast.Attribute):
        fields = [
            (b.value, at) for b, at in context.inference.fields(node, scope) if b.value is not None and not b.path
        ]
        return not fields or any(_differs(value, at, context, depth - 1) for value, at in fields)
    return False


def _made_by(node: ast.Call, scope: Scope, context: Context, depth: int) -> bool:
    name = context.name(node.func, scope)
    symbol = context.inference.symbol(node.func, scope)
    if symbol is not None:
        text = ast.unparse(symbol.node).lower()
        is_drawn = "iterabledataset" in text and "rand" in text and "seed" not in text
        return is_drawn or any(word in text for word in ("rank", "world", "shard", "worker_info"))
    if name == "datasets.load_dataset":
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _CHAIN:
        return _differs(node.func.value, scope, context, depth)
    if not name and isinstance(node.func, ast.Attribute):
        return _differs(node.func.value, scope, context, depth - 1)
    if name.startswith("torchvision.datasets."):
        return False  # of arguments that do not depend on the rank, as was asked above
    if name.startswith(("torch.utils.data.", "torch.")):
        return any(
            _differs(item, scope, context, depth - 1) for item in node.args if isinstance(item, (ast.Name, ast.Call))
        )
    return True
