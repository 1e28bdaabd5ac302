"""What leads to a line of the user's code: conditions on the rank with what they say of each rank, and whether anything else decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.run.watch.loops import changing_names
from phalanx.sources.rank_conditions import Condition
from phalanx.sources.user_code import around, parse_source, scope_of


def conditions_at(file: str, line: int) -> list[Condition]:
    """All conditions around a line within its function, the outermost first."""
    found = []
    for node in around(file, line, ast.If, ast.While):
        body, otherwise = node.body, node.orelse  # type: ignore[attr-defined]
        if body[0].lineno <= line <= (body[-1].end_lineno or 0):
            found.append(Condition(node.test, True, node.lineno))  # type: ignore[attr-defined]
        elif otherwise and otherwise[0].lineno <= line:
            found.append(Condition(node.test, False, node.lineno))  # type: ignore[attr-defined]
    return found


def is_common(file: str, line: int) -> bool:
    """Whether every rank comes to the line in the same passes, conditions on the rank aside: the others ask for loops' counters and what no
    loop changes."""
    tree = parse_source(file)
    if tree is None or any(True for _ in around(file, line, ast.ExceptHandler)):
        return False
    counters = {
        node.id
        for loop in around(file, line, ast.For)
        for node in ast.walk(loop.target)  # type: ignore[attr-defined]
        if isinstance(node, ast.Name)
    }
    changing = changing_names(scope_of(tree, line)) - counters
    for one in conditions_at(file, line):
        if one.is_about_ranks:
            continue
        names = {part.id for part in ast.walk(one.test) if isinstance(part, ast.Name)}
        if names & changing or any(isinstance(part, ast.Call) for part in ast.walk(one.test)):
            return False
        if any(name in names for name in _decided_elsewhere(tree, one.test)):
            return False
    return True


def _decided_elsewhere(tree: ast.Module, test: ast.expr) -> set[str]:
    """Names that decide by themselves (`if flag`, `if me == 0`) and were given something else than a constant: it may differ between ranks."""
    parts = [part for node in ast.walk(test) if isinstance(node, ast.BoolOp) for part in node.values] or [test]
    parts = [part.operand if isinstance(part, ast.UnaryOp) else part for part in parts]
    sides = [side for part in parts for side in _sides(part)]
    names = {side.id for side in sides if isinstance(side, ast.Name)}
    computed = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return names & computed


def _sides(part: ast.expr) -> list[ast.expr]:
    return [part.left, *part.comparators] if isinstance(part, ast.Compare) else [part]


def ways_past(file: str, line: int) -> list[tuple[int, Condition]]:
    """Lines of `continue`, `break` or `return` by which a pass of the innermost loop around a line can miss it, with what leads to each."""
    loops = list(around(file, line, ast.For, ast.While))
    if not loops:
        return []
    found = []
    for node in _own_statements(loops[-1]):
        if isinstance(node, ast.Continue | ast.Break | ast.Return) and node.lineno < line:
            under = [one for one in conditions_at(file, node.lineno) if one.line > loops[-1].lineno]  # type: ignore[attr-defined]
            if under:
                found.append((node.lineno, under[-1]))
    return found


def _own_statements(loop: ast.AST) -> Iterator[ast.AST]:
    """What stands in a loop, but not in a loop or function within it."""
    for child in ast.iter_child_nodes(loop):
        if isinstance(child, ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        yield child
        yield from _own_statements(child)
