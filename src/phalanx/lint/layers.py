"""The layers of a module class: which are made, which are used, and whether a forward pass always uses all of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from phalanx.lint.context import Context
from phalanx.lint.resolve import Value
from phalanx.lint.syntax import argument_of, element, parameters
from phalanx.lint.tree import Module, Scope

_LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d", "Embedding", "LSTM", "GRU", "RNN", "LayerNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "MultiheadAttention", "Transformer", "TransformerEncoder", "Bilinear", "ConvTranspose2d", "GroupNorm", "Parameter")  # fmt: skip
_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict", "ParameterList")
_READS = frozenset({"item", "any", "all", "sum", "mean", "max", "min"})
_BRANCHES = (ast.If, ast.IfExp, ast.While, ast.Try, ast.Return)


def owner_of(value: Value, context: Context) -> Scope | None:
    """The class of the project that made a value, if it is a torch module."""
    call = value.node
    owner = context.inference.symbol(call.func, value.scope) if isinstance(call, ast.Call) else None
    if owner is None or not isinstance(owner.node, ast.ClassDef):
        return None
    return owner if context.inference.bases(owner) == {"torch.nn.Module"} else None


def unused_layers(owner: Scope, context: Context) -> list[str]:
    """Layers with parameters that the constructor makes and that no text of the program mentions again."""
    made = [
        name
        for name, found in _fields(owner).items()
        if found and all(_is_layer(v, context, s, _LAYERS) for v, s in found)
    ]
    texts = [module.source.text for module in context.program]
    return [
        name
        for name in made
        if sum(text.count(f".{name}") + text.count(f"'{name}'") + text.count(f'"{name}"') for text in texts) == 1
    ]


def sometimes_unused(owner: Scope, context: Context) -> tuple[str, ast.expr] | None:
    """A layer that the forward pass uses only under a condition on dice or on the input's values, and that condition."""
    forward = next((b.node for b in owner.bindings.get("forward", ()) if b.kind == "def"), None)
    if forward is None or forward not in owner.module.scopes:
        return None
    scope = owner.module.scopes[forward]
    made = {name for name, found in _fields(owner).items() if all(_is_layer(v, context, s, _LAYERS) for v, s in found)}
    for branch, where in owner.module.branches:
        by_batch = _differs_by_batch(branch.test, context, scope)
        if where is not scope or not (by_batch or _differs_by_call(branch.test, owner, context, scope)):
            continue
        after = _after(branch, owner.module) if _ends(branch.body) and not branch.orelse else []
        sides = [_mentioned(branch.body), _mentioned([*branch.orelse, *after])]
        rest = _mentioned([forward], without=(branch, *after))
        names = sorted(made & (sides[0] ^ sides[1]) - rest)
        if names:
            is_else = names[0] in sides[1]
            return names[0], ast.copy_location(
                ast.UnaryOp(ast.Not(), branch.test), branch.test
            ) if is_else else branch.test
    return None


def _differs_by_batch(test: ast.expr, context: Context, scope: Scope) -> bool:
    """Random numbers, and values that are read out of tensors (`x.mean() > 0`, `mask.any()`)."""
    for call in (item for item in ast.walk(test) if isinstance(item, ast.Call)):
        name = context.name(call.func, scope)
        if name.startswith(("random.", "numpy.random.", "torch.rand")):
            return True
        base = call.func.value if isinstance(call.func, ast.Attribute) else None
        inputs = parameters(scope)[1:]
        if getattr(call.func, "attr", "") in _READS and any(
            isinstance(item, ast.Name) and item.id in inputs for item in ast.walk(base or call)
        ):
            return True
    return False


def _differs_by_call(test: ast.expr, owner: Scope, context: Context, scope: Scope) -> bool:
    """`task == "a"` of an argument for which the training loop passes now this, now that."""
    name = test.left.id if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) else ""
    if name not in parameters(scope)[1:] or not isinstance(getattr(test, "comparators", [None])[0], ast.Constant):
        return False
    given = [
        (item, where)
        for call, where in context.module.calls
        if context.loops_around(call)
        and any(
            owner_of(i, context) is owner for v in context.values(call.func, where) for i in context.inference.inner(v)
        )
        and (item := argument_of(call, scope, name)) is not None
    ]
    made = {
        ast.dump(m) for item, where in given for m, _ in context.origins(item, where) if isinstance(m, ast.Constant)
    }
    return len(made) > 1


def _ends(block: list[ast.stmt]) -> bool:
    return isinstance(block[-1], ast.Return)


def _after(branch: ast.If, module: Module) -> list[ast.stmt]:
    """The statements of a branch's own block that follow it."""
    parent, field = module.parents[branch]
    block: list[ast.stmt] = getattr(parent, field)
    return block[block.index(branch) + 1 :]


def _mentioned(nodes: Sequence[ast.AST], without: Sequence[ast.AST] = ()) -> set[str]:
    """Attributes of `self` in some code, a part of it left out."""
    found: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node in without:
            continue
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self":
            found.add(node.attr)
        stack.extend(ast.iter_child_nodes(node))
    return found


def uses_everything(owner: Scope, context: Context) -> bool:
    """Whether a deep model's forward pass is one straight path that mentions every layer."""
    forward = next((b.node for b in owner.bindings.get("forward", ()) if b.kind == "def"), None)
    fields = _fields(owner)
    kinds = (*_LAYERS, *_CONTAINERS, "ReLU", "GELU", "Dropout", "Tanh", "MaxPool2d", "Flatten", "Softmax")
    if forward is None or not fields:
        return False
    for found in fields.values():
        if not all(
            _is_layer(value, context, scope, kinds) or isinstance(value, (ast.Constant, ast.Name))
            for value, scope in found
        ):
            return False
    nodes = list(ast.walk(forward))
    if not any(isinstance(node, ast.For) for node in nodes):
        return False  # a handful of layers: the search costs nothing that anybody notices
    if sum(isinstance(node, _BRANCHES) for node in nodes) != 1:  # the one return
        return False
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return all(name in used for name, found in fields.items() if any(isinstance(value, ast.Call) for value, _ in found))


def _fields(owner: Scope) -> dict[str, list[tuple[ast.expr, Scope]]]:
    found = owner.module.self_fields.get(owner.node, {})
    return {
        name: [(value, scope) for b, scope in bindings if (value := element(b.value, b.path)) is not None]
        for name, bindings in found.items()
    }


def makes_layer(node: ast.expr, context: Context, scope: Scope) -> bool:
    """`nn.Linear(…)` and its like, moved to a device or not."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
        node = node.func.value
    if _is_layer(node, context, scope, (*_LAYERS, "Sequential")):
        return True
    owner = context.inference.symbol(node.func, scope) if isinstance(node, ast.Call) else None
    return owner is not None and "torch.nn.Module" in context.inference.bases(owner)


def adds_layer(method: Scope | None, context: Context) -> bool:
    """Whether a method of a model, other than the constructor, gives it a new layer."""
    if method is None or method.owner is None or getattr(method.node, "name", "") == "__init__":
        return False
    fields = method.module.self_fields.get(method.owner.node, {})
    bound = ((b.value, where) for found in fields.values() for b, where in found)
    return any(where is method and value is not None and makes_layer(value, context, where) for value, where in bound)


def _is_layer(node: ast.expr, context: Context, scope: Scope, kinds: tuple[str, ...]) -> bool:
    name = context.name(node.func, scope) if isinstance(node, ast.Call) else ""
    return name.startswith("torch.nn.") and name.rpartition(".")[2] in kinds
