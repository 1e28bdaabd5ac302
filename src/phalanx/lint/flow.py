"""Code and values followed through the project's functions: calls that code reaches, what a value is made from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from phalanx.lint.collectives import calls_in
from phalanx.lint.context import Context
from phalanx.lint.origins import Origin
from phalanx.lint.syntax import parameters
from phalanx.lint.tree import Scope

Reached = tuple[ast.Call, Scope]
_DEPTH = 4


def calls_reached(
    nodes: list[ast.stmt], scope: Scope, context: Context, *, names: frozenset[str], depth: int = _DEPTH
) -> Iterator[tuple[ast.Call, ast.Call, Scope]]:
    """Calls of methods of these names that statements make, themselves or by functions of the project.

    Of each: the call in the statements, the call itself, and its scope.
    """
    for node in nodes:
        for call in calls_in(node):
            if getattr(call.func, "attr", "") in names:
                yield call, call, scope
                continue
            for function in context.inference.callees(call.func, scope) if depth else ():
                inner = calls_reached(function.body, function, context, names=names, depth=depth - 1)
                yield from ((call, found, where) for _, found, where in inner)


def sites(context: Context, *names: str, depth: int = 2) -> Iterator[Reached]:
    """Calls of these names in the program, where this file makes them: themselves, or by a function of the project."""
    rest = [(item, depth) for item in context.calls_in_program(*names)]
    while rest:
        (call, scope), left = rest.pop(0)
        if scope.module is context.module:
            yield call, scope
        is_plain = scope.is_function and not any(isinstance(p, ast.If) for p, _ in scope.module.ancestors(call))
        rest += [(site, left - 1) for site in context.inference.callers(scope)] if is_plain and left else []


def handed_on(
    call: ast.Call, scope: Scope, context: Context, does: Callable[[ast.Call, Scope], ast.expr | None], depth: int = 3
) -> ast.expr | None:
    """What a call does something to: the argument that `does` names, or the one that a function hands on to such a call."""
    direct = does(call, scope)
    if direct is not None or not depth:
        return direct
    function = context.inference.symbol(call.func, scope)
    if function is None or not function.is_function:
        return None
    names = parameters(function)
    names = names[1:] if function.owner is not None and names[:1] == ["self"] else names
    for inner, where in function.module.calls:
        found = handed_on(inner, where, context, does, depth - 1) if where is function else None
        place = names.index(found.id) if isinstance(found, ast.Name) and found.id in names else -1
        if 0 <= place < len(call.args):
            return call.args[place]
        is_own = isinstance(found, ast.Attribute) and ast.unparse(found).startswith("self.")
        if is_own and ast.unparse(call.func).startswith("self."):
            return found  # a method that does it to a field of its object
    return None


def made_from(
    node: ast.AST, scope: Scope, context: Context, asks: Callable[[ast.AST, Scope], bool], depth: int = _DEPTH
) -> bool:
    """Whether an expression, or one that it is computed from, is as asked for."""
    for item in ast.walk(node):
        if asks(item, scope):
            return True
        for binding, where in context.inference.reaching(item.id, item, scope) if isinstance(item, ast.Name) and depth else ():  # fmt: skip
            is_value = binding.value is not None and binding.kind in ("assign", "augment", "for")
            if is_value and binding.value is not None and made_from(binding.value, where, context, asks, depth - 1):
                return True
    return False


def yielded_from(node: ast.expr, scope: Scope, context: Context) -> list[Origin]:
    """What an object of the project, or a generator function, iterates over to yield its own elements."""
    found: list[Origin] = []
    for made, where in context.origins(node, scope):
        owner = context.inference.symbol(made.func, where) if isinstance(made, ast.Call) else None
        if owner is not None and isinstance(owner.node, ast.ClassDef):
            owner = context.inference.member(owner, "__iter__")
        for loop, at in owner.module.loops if owner is not None else ():
            if at is owner and isinstance(loop, ast.For) and any(isinstance(n, ast.Yield) for n in ast.walk(loop)):
                found.append((loop.iter, at))
    return found
