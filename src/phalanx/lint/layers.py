"""The layers of a module class: which are made, which are used, and whether a forward pass always uses all of them."""

from __future__ import annotations

import ast

from phalanx.lint.context import Context
from phalanx.lint.resolve import Value
from phalanx.lint.tree import Scope

_LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d", "Embedding", "LSTM", "GRU", "RNN", "LayerNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "MultiheadAttention", "Transformer", "TransformerEncoder", "Bilinear", "ConvTranspose2d", "GroupNorm", "Parameter")  # fmt: skip
_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict", "ParameterList")
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
        name: [(b.value, scope) for b, scope in bindings if b.value is not None] for name, bindings in found.items()
    }


def _is_layer(node: ast.expr, context: Context, scope: Scope, kinds: tuple[str, ...]) -> bool:
    name = context.name(node.func, scope) if isinstance(node, ast.Call) else ""
    return name.startswith("torch.nn.") and name.rpartition(".")[2] in kinds
