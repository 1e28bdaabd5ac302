"""The optimizer is made before the model is sharded.

## What it does
Finds optimizers that take a model's parameters before `fully_shard` or FullyShardedDataParallel is applied to it.

## Why is this bad?
Sharding replaces the parameters. The optimizer keeps the old ones and updates tensors that nobody uses, so the model
never learns.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.distributed.fsdp import fully_shard

 dist.init_process_group("gloo")
 model = torch.nn.Linear(4, 1)
+fully_shard(model)
 optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
-fully_shard(model)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.flow import handed_on
from phalanx.lint.infer import DDP, FSDP, FULLY_SHARD
from phalanx.lint.layers import adds_layer, makes_layer
from phalanx.lint.patterns import following, keyword, names_in, root_name
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import first_argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT033",
    symptom="perf.non-convergence",
    cause="optimizer-holds-stale-parameters",
    pattern="fix-optimizer",
    do="Shard the model first, then make the optimizer from its parameters.",
    needs=("fully_shard", "FullyShardedDataParallel", "FSDP", "DDP", "DistributedDataParallel"),
)


def check(context: Context) -> Iterator[Hit]:
    """An optimizer above a call that shards the same variable, in one function, or above a new model."""
    yield from _of_another_model(context)
    yield from _before_new_layers(context)
    for shard, scope, name in _sharded(context):
        for call, where in context.module.calls:
            if where is not scope or call.lineno >= shard.lineno:
                continue
            if name in _held(call, context, where) and not _remade(call, name, shard, context, scope):
                text = (
                    f"This optimizer holds the parameters of `{name}` from before it is sharded at line {shard.lineno}"
                )
                yield Hit(call, text)


def _held(call: ast.Call, context: Context, scope: Scope) -> set[str]:
    """The model whose parameters an optimizer gets from a call, itself or by a method of the same object."""
    if _makes_optimizer(call, context, scope):
        first = call.args[0] if call.args else keyword(call, "params")
        return {root_name(first), _model_of(call)} - {""} if first is not None else set()

    def does(call: ast.Call, scope: Scope) -> ast.expr | None:
        given = call.args[0] if call.args else keyword(call, "params")
        func = given.func if isinstance(given, ast.Call) else None
        is_made = context.name(call.func, scope).startswith("torch.optim.") and ".lr_scheduler." not in context.name(call.func, scope)  # fmt: skip
        return func.value if is_made and isinstance(func, ast.Attribute) and func.attr == "parameters" else None

    given = handed_on(call, scope, context, does)
    return {ast.unparse(given)} if isinstance(given, ast.Attribute) else set()


def _of_another_model(context: Context) -> Iterator[Hit]:
    """An optimizer of a variable that is then bound to a new model, which is the one that is wrapped."""
    for wrap, scope in context.calls(DDP, FSDP):
        name = wrap.args[0].id if wrap.args and isinstance(wrap.args[0], ast.Name) else ""
        made = [
            b for b in scope.bindings.get(name, ()) if b.kind == "assign" and getattr(b.node, "lineno", 0) < wrap.lineno
        ]
        fresh = [b for b in made if b.value is not None and name not in names_in(b.value)]
        if len(fresh) < 2 or any(isinstance(p, ast.If) for b in made for p, _ in context.module.ancestors(b.node)):
            continue
        last = getattr(fresh[-1].node, "lineno", 0)
        calls = [c for c, s in context.module.calls if s is scope and _makes_optimizer(c, context, s)]
        if calls and all(c.lineno < last and name in names_in(c) for c in calls):
            yield Hit(
                calls[-1], f"This optimizer holds the parameters of another `{name}`: line {last} makes a new model"
            )


def _before_new_layers(context: Context) -> Iterator[Hit]:
    """An optimizer of a model that then gets a new layer in the same block, and no other optimizer after it."""
    if not context.is_torch_job:
        return
    made = [(c, s, _model_of(c)) for c, s in context.module.calls if _makes_optimizer(c, context, s)]
    for call, scope, model in made:
        later = following(context, call)
        if not model or any(o.lineno > call.lineno for o, s, m in made if s is scope and m == model):
            continue
        changed = next((s for s in later if _adds_layer(s, model, context, scope)), None)
        if changed is not None and "add_param_group" not in context.module.code:
            text = f"This optimizer does not hold the layer that `{model}` gets at line {changed.lineno}"
            yield Hit(call, text)


def _model_of(call: ast.Call) -> str:
    """`self.net` of `SGD(self.net.parameters())`."""
    first = call.args[0] if call.args else keyword(call, "params")
    func = first.func if isinstance(first, ast.Call) else None
    return ast.unparse(func.value) if isinstance(func, ast.Attribute) and func.attr == "parameters" else ""


def _adds_layer(statement: ast.stmt, model: str, context: Context, scope: Scope) -> bool:
    """`model.fc = nn.Linear(…)`, or a method of the model that does so."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        is_of_model = ast.unparse(statement.targets[0].value) == model
        return is_of_model and makes_layer(statement.value, context, scope)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or ast.unparse(call.func.value) != model
    ):
        return False
    return adds_layer(context.inference.symbol(call.func, scope), context)


def _makes_optimizer(call: ast.Call, context: Context, scope: Scope) -> bool:
    """`torch.optim.X(model.parameters())`, or a function of the project that is given the model and returns one."""
    if context.name(call.func, scope).startswith("torch.optim."):
        return "parameters" in ast.unparse(call)
    function = context.inference.symbol(call.func, scope)
    made = context.values(call, scope) if function is not None and function.is_function else ()
    return any(v.type.startswith("torch.optim.") and ".lr_scheduler." not in v.type for v in made)


def _sharded(context: Context) -> Iterator[tuple[ast.Call, Scope, str]]:
    """Calls that shard a variable, themselves or in a function of the project that they hand it to."""

    def does(call: ast.Call, scope: Scope) -> ast.expr | None:
        return first_argument(call, "module") if context.name(call.func, scope) in (FULLY_SHARD, FSDP) else None

    for call, scope in context.module.calls:
        given = handed_on(call, scope, context, does)
        is_looped = isinstance(given, ast.Name) and all(b.kind == "for" for b in scope.bindings.get(given.id, ()))
        if isinstance(given, (ast.Name, ast.Attribute)) and not is_looped:
            yield call, scope, ast.unparse(given)


def _remade(call: ast.Call, name: str, shard: ast.Call, context: Context, scope: Scope) -> bool:
    """The variable is bound anew in between: another model."""
    return any(
        b.kind == "assign" and call.lineno < getattr(b.node, "lineno", 0) < shard.lineno
        for b in scope.bindings.get(name, ())
    )
