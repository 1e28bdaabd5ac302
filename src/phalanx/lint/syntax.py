"""Questions about the syntax of calls, functions and bindings that need no knowledge of values."""

from __future__ import annotations

import ast

from phalanx.lint.tree import Binding, Module, Scope

_MANAGERS = frozenset({"contextmanager", "contextlib.contextmanager"})


def qualified(scope: Scope) -> str:
    """`package.module.Class.method` of a function or class."""
    parts: list[str] = []
    where: Scope | None = scope
    while where is not None and where.parent is not None:
        parts.append(getattr(where.node, "name", "<lambda>"))
        where = where.parent
    return ".".join([scope.module.name, *reversed(parts)])


def returns(function: Scope) -> list[ast.expr]:
    """The expressions that a function returns; those that a context manager yields."""
    if isinstance(function.node, ast.Lambda):
        return [function.node.body]
    if decorated(function.node, _MANAGERS):
        found = function.module.nodes[ast.Yield]
        return [n.value for n, s in found if s is function and isinstance(n, ast.Yield) and n.value is not None]
    return [
        node.value
        for node, scope in function.module.nodes[ast.Return]
        if scope is function and isinstance(node, ast.Return) and node.value is not None
    ]


def decorated(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether a function or class has one of these decorators, called or not."""
    for item in getattr(node, "decorator_list", []):
        if ast.unparse(item.func if isinstance(item, ast.Call) else item) in names:
            return True
    return False


def default_of(function: Scope, name: str) -> ast.expr | None:
    """The default value of a parameter."""
    arguments = getattr(function.node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return None
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(positional), reversed(arguments.defaults), strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((value for item, value in pairs if item.arg == name), None)


def first_argument(call: ast.Call, name: str) -> ast.expr | None:
    """The first positional argument, or the one of this name."""
    return argument(call, 0, name)


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument by position or name; None if it is not given."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if 0 <= position < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
        return call.args[position]
    return None


def parameters(function: Scope) -> list[str]:
    """Names of the positional parameters."""
    node = function.node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return []
    return [item.arg for item in (*node.args.posonlyargs, *node.args.args)]


def argument_of(call: ast.Call, function: Scope, name: str, *, after: int = 0) -> ast.expr | None:
    """What a call hands to a parameter; `after` skips arguments of the call's own, as the function in `partial(f, …)`."""
    names = parameters(function)
    position = names.index(name) if name in names else -1
    if function.owner is not None and names[:1] in (["self"], ["cls"]):
        position -= 1
    return argument(call, position + after if position >= 0 else -1, name)


def element(value: ast.expr | None, path: tuple[int, ...]) -> ast.expr | None:
    """The part of a written tuple that a path leads to."""
    for index in path:
        if not isinstance(value, (ast.Tuple, ast.List)) or index >= len(value.elts):
            return None
        value = value.elts[index]
    return value


def names_holding(made: ast.expr, scope: Scope) -> set[str]:
    """The variables of a scope that an expression is assigned to, by itself or in a written tuple."""
    return {name for name, bound in scope.bindings.items() if any(element(b.value, b.path) is made for b in bound)}


def position(node: ast.AST) -> tuple[int, int]:
    """Line and column."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def bindings_before(found: list[Binding], node: ast.AST, scope: Scope) -> list[Binding]:
    """Of a scope's own bindings those that reach a node: back to the first that every path passes."""
    if len(found) == 1:
        return found
    module: Module = scope.module
    here = position(node)
    own = module.statement(node)
    blocks = {(id(parent), field) for parent, field in [*module.ancestors(node)]}
    chosen: list[Binding] = []
    for binding in reversed(found):
        if binding.kind == "param":
            chosen.append(binding)
            continue
        statement = module.statement(binding.node)
        if statement is own and binding.kind in ("assign", "augment") and not isinstance(binding.node, ast.NamedExpr):
            continue
        if position(binding.node) >= here:
            continue
        step = module.parents.get(statement)
        block = (id(step[0]), step[1]) if step is not None else None
        if any(isinstance(p, ast.If) and _in_other_branch((p, f), blocks) for p, f in module.ancestors(binding.node)):
            continue
        chosen.append(binding)
        if block in blocks and binding.kind != "augment":
            break
    return chosen or list(reversed(found))


def _in_other_branch(step: tuple[ast.AST, str], blocks: set[tuple[int, str]]) -> bool:
    if (id(step[0]), step[1]) in blocks or step[1] == "test":
        return False
    other = "orelse" if step[1] == "body" else "body"
    return (id(step[0]), other) in blocks
