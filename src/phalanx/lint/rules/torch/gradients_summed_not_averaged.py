"""Gradients that are added up over ranks and never divided.

## What it does
Finds `all_reduce` of gradients with the default operation SUM in a function without a division by the world size.

## Why is this bad?
The sum is world-size times the mean gradient: the effective learning rate grows with the number of ranks, and
training diverges on larger jobs.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 torch.manual_seed(0)
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 model(torch.randn(8, 4)).sum().backward()
 for parameter in model.parameters():
     dist.all_reduce(parameter.grad)
+    parameter.grad /= dist.get_world_size()
 optimizer.step()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.flow import made_from
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT008",
    symptom="perf.non-convergence",
    cause="gradients-not-averaged",
    pattern="fix-loss-function",
    do="Divide by `dist.get_world_size()` after the all-reduce.",
    needs=("all_reduce",),
)

_STATISTICS = frozenset({"norm", "sum", "isnan", "isfinite", "isinf", "any", "all", "item", "max", "mean", "tensor", "zeros", "abs", "pow"})  # fmt: skip
_WORLD = (
    "world",
    "size",
    "nprocs",
    "num_replicas",
    "n_gpu",
    "num_processes",
    "nranks",
    "n_ranks",
    "num_workers",
    "WORLD",
)


def check(context: Context) -> Iterator[Hit]:
    """All-reduces of `.grad`, with nothing in the function that divides, where an optimizer steps."""
    if not context.methods_in_program("step"):
        return
    for call, scope in context.calls("torch.distributed.all_reduce"):
        tensor = call.args[0] if call.args else None
        operation = argument(call, 1, "op")
        if context.collectives.operation(call, scope) is None:
            continue  # a smaller group has its own idea of the scale
        if (
            tensor is None
            or not _is_gradient(tensor, context, scope)
            or (operation is not None and "SUM" not in ast.unparse(operation))
        ):
            continue
        if not _divides(scope, context):
            yield Hit(call, "Gradients are summed over the ranks and never divided by their number")


def _is_gradient(node: ast.expr, context: Context, scope: Scope) -> bool:
    """`p.grad`, or what is packed from gradients: `torch.cat([p.grad.flatten() for p in …])`."""

    def asks(item: ast.AST, _: Scope) -> bool:
        return isinstance(item, ast.Attribute) and item.attr == "grad"

    return made_from(node, scope, context, asks) and not _is_statistic(node, context, scope)


def _is_statistic(node: ast.expr, context: Context, scope: Scope) -> bool:
    """A norm or a flag that is computed from gradients is no gradient."""
    return made_from(
        node, scope, context, lambda item, _: getattr(item, "attr", getattr(item, "id", "")) in _STATISTICS
    )


def _is_scaled_gradient(node: ast.AST) -> bool:
    """`p.grad /= n`, whatever n is called."""
    target = node.target if isinstance(node, ast.AugAssign) else getattr(node, "left", node)
    return "grad" in ast.unparse(target)


def _divides(scope: Scope, context: Context) -> bool:
    """A division in the function, in its callers, or of the loss or the learning rate by the number of ranks."""
    nodes = [scope.node, *(where.node for _, where in context.inference.callers(scope))]
    for item in (item for node in nodes for item in ast.walk(node)):
        is_scaling = isinstance(item, (ast.BinOp, ast.AugAssign)) and isinstance(item.op, (ast.Div, ast.Mult))
        if is_scaling and (_is_scaled_gradient(item) or any(word in ast.unparse(item) for word in _WORLD)):
            return True
        if isinstance(item, ast.Constant) and item.value == "sum":
            return True  # the loss is a sum over examples, and its scale is somebody's choice
        if (
            isinstance(item, ast.Call)
            and isinstance(item.func, ast.Attribute)
            and item.func.attr in ("div_", "div", "mul_", "mul", "true_divide")
        ):
            return True
    return False
