"""Arguments that a call gets through `**options`: put in their place where the dictionary is written beside the call."""

from __future__ import annotations

import ast

from phalanx.lint.origins import Origins
from phalanx.lint.tree import Module, Scope

_CHANGES = frozenset({"update", "setdefault", "pop", "clear"})


def spread_options(module: Module, inference: Origins) -> None:
    """Replace `**options` in the calls of a file by the keywords that the dictionary holds, so that rules see them."""
    for call, scope in module.calls:
        for item in [item for item in call.keywords if item.arg is None]:
            found = _written(item.value, scope, inference)
            if found:
                call.keywords.remove(item)
                given = {keyword.arg for keyword in call.keywords}
                call.keywords += [keyword for keyword in found if keyword.arg not in given]


def _written(node: ast.expr, scope: Scope, inference: Origins) -> list[ast.keyword]:
    """The entries of a dictionary that nothing changes after it was written; none if any of them is not known."""
    made, where = inference.origin(node, scope)
    found: list[ast.keyword] = []
    if isinstance(made, ast.Call) and not made.args and inference.dotted(made.func, where) == "builtins.dict":
        found = list(made.keywords)
    elif isinstance(made, ast.Dict):
        pairs = zip(made.keys, made.values, strict=True)
        found = [ast.copy_location(ast.keyword(arg=getattr(key, "value", None), value=v), v) for key, v in pairs]
    is_near = where is scope or where is scope.module.scope  # elsewhere a name may mean another thing
    is_plain = all(isinstance(item.arg, str) and (is_near or isinstance(item.value, ast.Constant)) for item in found)
    return found if is_plain and found and not _is_changed(node, scope) else []


def _is_changed(node: ast.expr, scope: Scope) -> bool:
    name = getattr(node, "id", None)
    stored = any(base == name and key.startswith("[") for base, key in scope.module.fields)
    calls = (call.func for call, _ in scope.module.calls if isinstance(call.func, ast.Attribute))
    return stored or any(getattr(func.value, "id", "") == name and func.attr in _CHANGES for func in calls)
