"""Whether anything but the rank decides that a line of the user's code is reached, and which ways lead past it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.model import Frame
from phalanx.run.watch.loops import is_common_path
from phalanx.sources.rank_conditions import Condition, conditions_at
from phalanx.sources.user_code import around, parse_source


def is_common(frame: Frame) -> bool:
    """Whether every rank comes to the line in the same passes, conditions on the rank aside: the others ask for loops' counters and what no
    loop changes, and for nothing that was computed elsewhere."""
    tree = parse_source(frame.file)
    others = [one for one in conditions_at(frame.file, frame.line) if not one.is_about_ranks]
    return (
        tree is not None and is_common_path((frame,)) and not any(_decided_elsewhere(tree, one.test) for one in others)
    )


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
