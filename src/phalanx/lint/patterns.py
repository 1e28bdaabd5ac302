"""Questions that several rules ask of a piece of code, and the small repairs that several rules make."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from phalanx.lint.context import Context
from phalanx.lint.resolve import Value
from phalanx.lint.rule import Edit
from phalanx.lint.syntax import returns
from phalanx.lint.tree import Scope

_SEEDERS = frozenset({"seed_everything", "set_seed", "fix_seed", "seed_all", "set_random_seed"})
_CHANGES = ("no_grad", "inference_mode", "set_grad_enabled")


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((item.value for item in call.keywords if item.arg == name), None)


def device_text(node: ast.expr | None, context: Context, scope: Scope) -> object:
    """`cuda:0` of `torch.device("cuda:0")`, if the expression is nothing else."""
    values = context.values(node, scope)
    calls = [v for v in values if v.type == "torch.device" and isinstance(v.node, ast.Call) and len(v.node.args) == 1]
    if len(values) != 1 or not calls:
        return None
    first = calls[0].node.args[0] if isinstance(calls[0].node, ast.Call) else None
    return context.constant(first, calls[0].scope)


def states_in(node: ast.expr, context: Context, scope: Scope) -> Iterator[ast.expr]:
    """The objects whose `state_dict()` an expression holds, in a dictionary or a variable too."""
    if isinstance(node, ast.Name):
        found = context.inference.reaching(node.id, node, scope)
        if len(found) == 1 and found[0][0].kind == "assign" and isinstance(found[0][0].value, (ast.Dict, ast.Call)):
            yield from states_in(found[0][0].value, context, found[0][1])
        return
    for item in ast.walk(node):
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr == "state_dict":
            yield item.func.value


def seeded_by_library(context: Context) -> bool:
    """Whether a library's helper is given a seed that is the same on every rank; those of the project are read."""
    for module in context.program:
        for call, scope in module.calls:
            last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if last in _SEEDERS and context.inference.symbol(call.func, scope) is None:
                return not any(context.ranks.depends(item, scope) for item in call.args)
    return False


def has_rest(call: ast.Call) -> bool:
    """Whether `*args` or `**kwargs` may hold what is not seen."""
    return any(isinstance(item, ast.Starred) for item in call.args) or any(item.arg is None for item in call.keywords)


def names_in(node: ast.AST) -> set[str]:
    """Names that an expression reads."""
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


def root_name(node: ast.AST) -> str:
    """`a` of `a.b[0].c()`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def block_of(context: Context, node: ast.AST) -> list[ast.stmt]:
    """The statements among which a node's statement stands."""
    statement = context.module.statement(node)
    parent, field = context.module.parents.get(statement, (None, ""))
    block = getattr(parent, field, [])
    return block if isinstance(block, list) else []


def following(context: Context, node: ast.AST) -> list[ast.stmt]:
    """The statements after a node's own in its block."""
    block = block_of(context, node)
    statement = context.module.statement(node)
    return block[block.index(statement) + 1 :] if isinstance(statement, ast.stmt) and statement in block else []


def calls_below(nodes: list[ast.stmt]) -> Iterator[ast.Call]:
    """All calls within statements, nested functions included."""
    for node in nodes:
        for item in ast.walk(node):
            if isinstance(item, ast.Call):
                yield item


def repeats(
    node: ast.AST, scope: Scope, context: Context, asks: Callable[[list[ast.stmt], Scope], bool], depth: int = 3
) -> bool:
    """Whether a node runs in a loop whose body is as asked for: of its own function, or of one that calls it."""
    if any(asks(loop.body, scope) for loop in context.loops_around(node)):
        return True
    callers = context.inference.callers(scope.function) if scope.function is not None and depth else []
    return any(repeats(call, at, context.space.context(at.module), asks, depth - 1) for call, at in callers[:4])


def is_module(value: Value, context: Context) -> bool:
    """Whether a value is a wrapper, a layer or a model, and not what one of its methods gives."""
    func = value.node.func if isinstance(value.node, ast.Call) else None
    if func is None or (isinstance(func, ast.Attribute) and context.values(func.value, value.scope)):
        return False
    if value.type.startswith(("torch.nn.", "torchvision.models.")):
        return value.type.startswith("torchvision.") or value.type.rpartition(".")[2][:1].isupper()
    owner = context.inference.symbol(func, value.scope)
    return owner is not None and "torch.nn.Module" in context.inference.bases(owner)


def is_without_gradients(context: Context, node: ast.AST) -> bool:
    """Whether a node runs under `torch.no_grad()` or its like, as a block or a decorator of its function."""
    for parent, _ in context.module.ancestors(node):
        items = [item.context_expr for item in parent.items] if isinstance(parent, ast.With) else []
        for expression in (*items, *getattr(parent, "decorator_list", [])):
            if any(word in ast.unparse(expression) for word in _CHANGES):
                return True
    return False


def in_with(context: Context, node: ast.AST, method: str) -> bool:
    """Whether a node is within `with x.method():` of its own function."""
    for parent, _ in context.module.ancestors(node):
        if parent in context.module.scopes:
            return False
        if isinstance(parent, ast.With) and any(f"{method}(" in ast.unparse(i.context_expr) for i in parent.items):
            return True
    return False


def wrapped_by(context: Context, *wrappers: str) -> dict[tuple[str, Scope], ast.Call]:
    """Names that hold an inner model after it was wrapped: `ddp = DDP(net)` gives `net`."""
    found = {}
    for call, scope in context.calls(*wrappers):
        inner = call.args[0] if call.args else keyword(call, "module")
        statement = context.module.statement(call)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        kept = {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(inner, ast.Name) and inner.id not in kept and kept:
            found[inner.id, scope] = call
    return found


def backward_uses(context: Context, scope: Scope, name: str, depth: int = 4) -> bool:
    """Whether `.backward()` is called on a variable of a scope or on what is computed from it, by a caller too."""
    for call, where in context.methods("backward"):
        if where is scope and isinstance(call.func, ast.Attribute) and name in names_in(call.func.value):
            return True
    if not depth:
        return False
    others = {
        other
        for other, bindings in scope.bindings.items()
        for binding in bindings
        if binding.kind in ("assign", "augment") and binding.value is not None and name in names_in(binding.value)
    }
    if any(backward_uses(context, scope, other, depth - 1) for other in others - {name}):
        return True
    results = returns(scope) if scope.is_function else []
    return any(name in names_in(result) for result in results) and result_is_trained(context, scope, depth - 1)


def result_is_trained(context: Context, function: Scope, depth: int = 3) -> bool:
    """Whether callers run `.backward()` on what a function returns."""
    for call, where in context.inference.callers(function)[:4] if depth > 0 else ():
        other = context.space.context(where.module)
        if is_in_backward(other, call) or any(backward_uses(other, where, n, depth) for n in assigned_to(other, call)):
            return True
    return False


def is_in_backward(context: Context, node: ast.AST) -> bool:
    """Whether an expression is part of one on which `.backward()` is called."""
    parents = (parent for parent, _ in context.module.ancestors(node))
    return any(isinstance(p, ast.Call) and getattr(p.func, "attr", "") == "backward" for p in parents)


def assigned_to(context: Context, node: ast.AST) -> set[str]:
    """Names that the statement around an expression assigns."""
    statement = context.module.statement(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {item.id for target in targets for item in ast.walk(target) if isinstance(item, ast.Name)}


def column(context: Context, line: int, offset: int) -> int:
    """A column in characters; `ast` counts bytes."""
    return len(context.module.lines[line - 1].encode()[:offset].decode(errors="replace"))


def append_argument(context: Context, call: ast.Call, text: str) -> tuple[Edit, ...]:
    """Add an argument behind the last one; nothing where brackets or comments around it make that uncertain."""
    items: list[ast.expr] = [*call.args, *(item.value for item in call.keywords)]
    last = max(items, key=lambda item: (item.end_lineno or 0, item.end_col_offset or 0), default=None)
    end = (call.end_lineno or 1, column(context, call.end_lineno or 1, call.end_col_offset or 0))
    if last is None:
        return (Edit((end[0], end[1] - 1), (end[0], end[1] - 1), text),)
    at = (last.end_lineno or 1, column(context, last.end_lineno or 1, last.end_col_offset or 0))
    lines = context.module.lines[at[0] - 1 : end[0]]
    between = "\n".join(lines)[at[1] :]
    between = between[: len(between) - (len(lines[-1]) - end[1])]
    return (Edit(at, at, f", {text}"),) if between.replace(",", "").strip() == ")" else ()


def drop_keyword(context: Context, call: ast.Call, name: str) -> Edit | None:
    """Remove a keyword argument that follows another argument, with the comma before it."""
    items: list[ast.expr] = [*call.args, *(item.value for item in call.keywords)]
    given = keyword(call, name)
    if given is None or items.index(given) == 0:
        return None
    before = items[items.index(given) - 1]
    first, last = before.end_lineno or 1, given.end_lineno or 1
    start = (first, column(context, first, before.end_col_offset or 0))
    return Edit(start, (last, column(context, last, given.end_col_offset or 0)), "")
