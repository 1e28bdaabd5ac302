"""Training calls the inner model, past its wrapper.

## What it does
Finds forward passes through `.module`, or through the variable that still holds the unwrapped model, whose loss is
then used for a backward pass.

## Why is this bad?
DDP and FSDP act in the wrapper's forward. Past it gradients are never averaged (DDP) or parameters never gathered
(FSDP): each rank trains a model of its own.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 net = torch.nn.Linear(4, 1)
 model = DistributedDataParallel(net)
-loss = model.module(torch.randn(8, 4)).square().mean()
+loss = model(torch.randn(8, 4)).square().mean()
 loss.backward()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP, FSDP
from phalanx.lint.layers import owner_of
from phalanx.lint.patterns import (
    assigned_to,
    backward_uses,
    calls_below,
    is_in_backward,
    is_without_gradients,
    result_is_trained,
    wrapped_by,
)
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument_of, parameters
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT030",
    symptom="perf.unexpected-intermediate-result",
    cause="gradients-not-synchronised",
    pattern="fix-distributed-api-usage",
    do="Call the wrapped model.",
)


def check(context: Context) -> Iterator[Hit]:
    """Calls of `x.module(…)` or of the wrapped variable, outside of `no_grad`, that lead to a backward pass."""
    inner, fields = wrapped_by(context, DDP, FSDP), _fields(context)
    for call, scope in context.module.calls:
        is_past = _is_module(call, context, scope) or _is_inner(call, inner, scope) or _is_field(call, fields, scope)
        if is_past and not is_without_gradients(context, call):
            names = assigned_to(context, call)
            if (
                any(backward_uses(context, scope, name) for name in names)
                or is_in_backward(context, call)
                or _is_returned(call, context, scope)
            ):
                yield Hit(
                    call,
                    f"`{context.text(call.func)}` is called, not the wrapped model: gradients are not synchronised",
                )
        elif call.args and not is_past:
            name = _handed_to_training(call, inner, context, scope)
            if name:
                yield Hit(
                    call,
                    f"`{context.text(call.func)}` trains `{name}`, not the wrapped model: gradients are not synchronised",
                )


def _fields(context: Context) -> dict[tuple[str, ast.AST], int]:
    """`self.net` of `self.ddp = DDP(self.net)`, by class."""
    found = {}
    for call, scope in context.calls(DDP, FSDP):
        first = call.args[0] if call.args else None
        statement = context.module.statement(call)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        owner = scope.function.owner if scope.function is not None else None
        if (
            isinstance(first, ast.Attribute)
            and isinstance(target, ast.Attribute)
            and first.attr != target.attr
            and owner is not None
        ):
            found[first.attr, owner.node] = call.lineno
    return found


def _is_field(call: ast.Call, fields: dict[tuple[str, ast.AST], int], scope: Scope) -> bool:
    owner = scope.function.owner if scope.function is not None else None
    is_self = isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "self"
    return is_self and owner is not None and (getattr(call.func, "attr", ""), owner.node) in fields


def _handed_to_training(
    call: ast.Call, inner: dict[tuple[str, Scope], ast.Call], context: Context, scope: Scope
) -> str:
    """The unwrapped model, where a function of the project that calls it and runs backward gets it."""
    for item in call.args:
        wrap = inner.get((item.id, scope)) if isinstance(item, ast.Name) else None
        function = (
            context.inference.symbol(call.func, scope) if wrap is not None and call.lineno > wrap.lineno else None
        )
        if (
            function is not None
            and isinstance(function.node, ast.ClassDef)
            and _trains_field(call, item, function, context)
        ):
            return ast.unparse(item)
        if function is None or not function.is_function or not isinstance(item, ast.Name):
            continue
        place = call.args.index(item)
        name = parameters(function)[place] if place < len(parameters(function)) else ""
        calls = [c for c in calls_below(function.body) if getattr(c.func, "id", "") == name]
        if (
            calls
            and context.trains(function.body, function, 1)
            and not any(is_without_gradients(context, c) for c in calls if function.module is context.module)
        ):
            return item.id
    return ""


def _trains_field(call: ast.Call, item: ast.expr, owner: Scope, context: Context) -> bool:
    """Whether a class keeps what its constructor is given in a field, and a method whose result is trained calls that."""
    made = context.inference.member(owner, "__init__")
    given = [n for n in parameters(made) if argument_of(call, made, n) is item] if made is not None else []
    own = owner.module.self_fields.get(owner.node, {})
    kept = {field for field, bound in own.items() if any(getattr(b.value, "id", "") in given for b, _ in bound)}
    other = context.space.context(owner.module)
    return any(
        isinstance(c.func, ast.Attribute)
        and c.func.attr in kept
        and getattr(c.func.value, "id", "") == "self"
        and s.owner is owner
        and not is_without_gradients(other, c)
        and (result_is_trained(other, s) or any(backward_uses(other, s, name) for name in assigned_to(other, c)))
        for c, s in owner.module.calls
    )


def _is_module(call: ast.Call, context: Context, scope: Scope) -> bool:
    func = call.func
    if isinstance(func, ast.Name):
        made, where = context.origin(func, scope)  # `net = model.module`
        return made is not func and isinstance(made, ast.Attribute) and made.attr == "module" and _wraps(made.value, context, where)  # fmt: skip
    if not isinstance(func, ast.Attribute):
        return False
    target = func if func.attr == "module" else func.value
    wrapper = target.value if isinstance(target, ast.Attribute) and target.attr == "module" else None
    if wrapper is None:
        return _is_unwrapped(call, func, context, scope)
    if not _wraps(wrapper, context, scope):
        return False
    if func.attr in ("module", "forward"):
        return True
    # A method of the inner model is one more term of the loss, unless nothing here calls the wrapper.
    text = ast.dump(wrapper)
    return bool(call.args) and not any(ast.dump(c.func) == text for c, s in context.module.calls if s is scope)


def _wraps(node: ast.expr, context: Context, scope: Scope) -> bool:
    return any(value.type in (DDP, FSDP) for value in context.values(node, scope))


def _is_unwrapped(call: ast.Call, func: ast.Attribute, context: Context, scope: Scope) -> bool:
    """`net.encode(x)` after `net = model.module`, where nothing in the program calls the wrapper for training."""
    if not call.args or not isinstance(func.value, ast.Name):
        return False
    held = [value for value in context.values(func.value, scope) if "unwrapped" in value.tags]
    return any(owner_of(value, context) is not None for value in held) and not any(
        value.type in (DDP, FSDP) and not is_without_gradients(other, c)
        for other in context.contexts
        for c, s in other.module.calls
        if isinstance(c.func, (ast.Name, ast.Attribute))
        for value in context.values(c.func, s)
    )


def _is_returned(call: ast.Call, context: Context, scope: Scope) -> bool:
    """The result goes straight to the caller, which runs backward on it."""
    statement = context.module.statement(call)
    return isinstance(statement, ast.Return) and scope.is_function and result_is_trained(context, scope)


def _is_inner(call: ast.Call, inner: dict[tuple[str, Scope], ast.Call], scope: Scope) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    wrap = inner.get((name, scope))
    return wrap is not None and call.lineno > wrap.lineno
