"""Ranks that get different numbers of batches.

## What it does
Finds amounts chosen by the rank (`128 if rank != 2 else 96`) that become a range, a slice, a shape or a subset in a
program whose steps synchronise.

## Why is this bad?
A rank with fewer batches leaves the loop early; the others wait for it in the all-reduce of their next step.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 rank = dist.get_rank()
 model = DistributedDataParallel(torch.nn.Linear(4, 1))
-steps = 100 if rank == 0 else 90
+steps = 90
 for step in range(steps):
     model(torch.randn(8, 4)).sum().backward()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.flow import yielded_from
from phalanx.lint.patterns import assigned_to, names_in, root_name
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import parameters
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LCM007",
    symptom="perf.hang",
    cause="uneven-steps",
    pattern="fix-batch-size-or-data-partition",
    do="Give every rank the same number of batches (DistributedSampler, `drop_last`), or join: DDP's `join()` context or `hvd.join()`.",
)

_PASSES = frozenset(
    {"builtins.enumerate", "tqdm.tqdm", "tqdm.auto.tqdm", "builtins.iter", "torch.utils.data.DataLoader"}
)
_COUNTS = ("%", "//", "min(", "islice", "world")  # whoever counts may make shares equal
_EVENS = ("%", "//", "min(", "islice", "while True", "cycle(")
_LISTINGS = frozenset({"glob.glob", "os.listdir", "glob.iglob"})
_SIZES = frozenset({"range", "take", "skip", "randn", "rand", "zeros", "ones", "randint", "Subset", "islice", "narrow"})


def check(context: Context) -> Iterator[Hit]:
    """Amounts that a rank condition chooses, where every step is a collective."""
    if not context.synchronised_loops or _joins(context):
        return
    for node, scope in context.module.nodes[ast.IfExp]:
        if (
            isinstance(node, ast.IfExp)
            and _differs(node, context, scope)
            and (_is_slice(node.body) or _is_amount(node, context, scope, 3))
        ):
            yield Hit(node, f"The amount of data or steps depends on the rank: `{context.text(node)}`")
    for loop, scope in context.synchronised_loops:
        bound = _bound(loop, context, scope)
        if (
            bound is not None
            and context.ranks.depends(bound, scope)
            and not isinstance(bound, ast.IfExp)
            and not _is_chosen(bound, context, scope)
        ):
            yield Hit(loop, f"The number of steps `{context.text(bound)}` depends on the rank")
    for loop, scope in context.synchronised_loops:
        is_counted = any(isinstance(item, ast.Break) for item in ast.walk(loop))
        stride = _stride(loop.iter, context, scope) if isinstance(loop, ast.For) and not is_counted else None
        if stride is not None:
            yield Hit(loop, f"Ranks get different numbers of items from `{context.text(stride)}`; every item is a step")
    for node, scope in context.module.nodes[ast.Assign]:
        if isinstance(node, ast.Assign) and _is_cut(node, context, scope):
            yield Hit(node, f"Some ranks only cut their data: `{context.text(node)}`")


def _joins(context: Context) -> bool:
    """Whether ranks may end at different steps: `hvd.join()`, DDP's `model.join()`, `Join([…])`; not `os.path.join`."""
    calls = [c for c, s in context.methods("join") if len(c.args) == 0 or context.name(c.func, s).startswith("horovod")]
    return bool(calls) or context.mentions("Join(")


def _bound(loop: ast.AST, context: Context, scope: Scope) -> ast.expr | None:
    """`n` of `for i in range(n)`; of `range(start, n)` the one that depends on the rank."""
    call = loop.iter if isinstance(loop, ast.For) else None
    is_range = isinstance(call, ast.Call) and context.name(call.func, scope) == "builtins.range" and len(call.args) < 3
    given = call.args if is_range and isinstance(call, ast.Call) else []
    differing = [item for item in given if isinstance(item, ast.Name) and context.ranks.depends(item, scope)]
    return given[0] if len(given) == 1 else differing[0] if len(differing) == 1 else None


def _stride(node: ast.expr, context: Context, scope: Scope) -> ast.expr | None:
    """`files[rank::world]` behind what a loop iterates over, where nothing makes the number of files divisible."""
    for made, where in context.origins(node, scope):
        if isinstance(made, ast.Call):
            own = context.inference.symbol(made.func, where)  # a generator or data set over what it is given
            inner = made.args if own is not None or context.name(made.func, where) in _PASSES else []
            for source, at in yielded_from(made, where, context) if own is not None else ():
                found = _stride(source, context, at)
                if own is not None and found is not None and not any(word in ast.unparse(own.node) for word in _EVENS):
                    return found
            if own is not None and any(word in ast.unparse(own.node) for word in _COUNTS):
                return None
            return next((found for item in inner if (found := _stride(item, context, where)) is not None), None)
        if isinstance(made, (ast.ListComp, ast.GeneratorExp)):
            return (
                made if _is_filtered_share(made, context, where) else _stride(made.generators[0].iter, context, where)
            )
        if not isinstance(made, ast.Subscript) or not isinstance(made.slice, ast.Slice) or made.slice.step is None:
            return None
        lower = made.slice.lower
        is_share = lower is not None and made.slice.upper is None and context.ranks.depends(lower, where)
        if not is_share or not _is_of_files(made.value, context, where):
            return None
        return made
    return None


def _is_filtered_share(made: ast.ListComp | ast.GeneratorExp, context: Context, scope: Scope) -> bool:
    """`[f for i, f in enumerate(files) if i % world == rank]`."""
    first = made.generators[0]
    tests = [test for test in first.ifs if any(isinstance(item, ast.Mod) for item in ast.walk(test))]
    source = first.iter
    if isinstance(source, ast.Call) and source.args and context.name(source.func, scope) in _PASSES:
        source = source.args[0]
    return any(context.ranks.depends(test, scope) for test in tests) and _is_of_files(source, context, scope, made)


def _is_of_files(node: ast.expr, context: Context, scope: Scope, share: ast.expr | None = None) -> bool:
    """Whether a list is as long as a folder has files, and is cut or padded by nothing."""
    for made, where in context.origins(node, scope):
        text = ast.unparse(where.node).replace(ast.unparse(share) if share is not None else "\0", "")
        if "%" in text or "//" in text or not isinstance(made, ast.Call):
            return False  # somebody counts, or it is something else
        name, last = context.name(made.func, where), getattr(made.func, "attr", "")
        if name in ("builtins.sorted", "builtins.list") and made.args:
            return _is_of_files(made.args[0], context, where, share)
        if name not in _LISTINGS and last not in ("glob", "rglob", "iterdir", "readlines"):
            return False
    return True


def _is_chosen(node: ast.expr, context: Context, scope: Scope) -> bool:
    """Found already, where the number is chosen."""
    found = context.inference.reaching(node.id, node, scope) if isinstance(node, ast.Name) else []
    return any(isinstance(item, ast.IfExp) for b, _ in found if b.value is not None for item in ast.walk(b.value))


def _is_cut(node: ast.Assign, context: Context, scope: Scope) -> bool:
    """`x = x[:n]`, or a slice whose end alone depends on the rank."""
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    targets = assigned_to(context, node.value)
    for value in values:
        if not _is_slice(value) or not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Slice):
            continue
        is_own = (
            root_name(value) in targets
            and isinstance(context.constant(value.slice.upper, scope), int)
            and value.slice.lower is None
        )
        if is_own and context.ranks.guard(node, scope, callers=False) is not None:
            return True
        upper = value.slice.upper
        if (
            value.slice.lower is None
            and isinstance(upper, ast.BinOp)
            and isinstance(upper.op, (ast.Sub, ast.Add))
            and context.ranks.depends(upper, scope)
        ):
            return True
    return False


def _differs(node: ast.IfExp, context: Context, scope: Scope) -> bool:
    """Two different numbers, or two different slices of the same data, by the rank."""
    if not context.ranks.depends(node.test, scope) or ast.dump(node.body) == ast.dump(node.orelse):
        return False
    if _is_slice(node.body) and _is_slice(node.orelse):
        return bool(names_in(node.body) & names_in(node.orelse))
    pair = [context.constant(part, scope) for part in (node.body, node.orelse)]
    numbers = [value for value in pair if isinstance(value, int) and not isinstance(value, bool)]
    if len(numbers) == 2:
        return numbers[0] != numbers[1] and max(numbers) > 1
    return any(isinstance(part, ast.BinOp) for part in (node.body, node.orelse)) and not numbers


def _is_slice(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _is_amount(node: ast.expr, context: Context, scope: Scope, depth: int) -> bool:
    """Whether a value ends up where it decides how much there is."""
    child: ast.AST = node
    for parent, field in context.module.ancestors(node):
        if isinstance(parent, ast.Slice) and field in ("lower", "upper"):
            return True
        if isinstance(parent, ast.Call) and field in ("args", "keywords"):
            name = context.name(parent.func, scope).rpartition(".")[2] or getattr(parent.func, "attr", "")
            return name in _SIZES or _handed_on(child, parent, context, scope, depth)
        if isinstance(parent, ast.Assign) and depth:
            return any(_used_as_amount(name, context, scope, depth) for name in assigned_to(context, node))
        if isinstance(parent, ast.stmt):
            return False
        child = parent
    return False


def _used_as_amount(name: str, context: Context, scope: Scope, depth: int) -> bool:
    uses = [n for n in ast.walk(scope.node) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    return any(_is_amount(use, context, scope, depth - 1) for use in uses)


def _handed_on(child: ast.AST, call: ast.Call, context: Context, scope: Scope, depth: int) -> bool:
    function = context.inference.symbol(call.func, scope)
    if function is None or not depth or function.module is not context.module:
        return False
    names = parameters(function)
    if isinstance(child, ast.keyword):
        return child.arg is not None and _used_as_amount(child.arg, context, function, depth)
    place = call.args.index(child) if child in call.args else -1
    return 0 <= place < len(names) and _used_as_amount(names[place], context, function, depth)
