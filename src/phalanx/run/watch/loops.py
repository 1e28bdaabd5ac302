"""In which pass of its loops a rank is, by the source and its variables: who has left a pass in which another still waits for it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache

from phalanx.model import Frame
from phalanx.sources.rank_conditions import conditions_at
from phalanx.sources.user_code import around, parse_source, scope_of

Pass = tuple[str, str, str, int]  # file, function, the loop's variable, its value


def passes_of(frames: Sequence[Frame], values: Sequence[Mapping[str, str]]) -> tuple[Pass, ...]:
    """The numbered loops of the user's code that a stack stands in, the outermost first. Loops over other things are left out."""
    found: list[Pass] = []
    for frame, told in zip(frames, values, strict=False):
        if not frame.is_user_code:
            continue
        for loop in around(frame.file, frame.line, ast.For):
            name = _counter_of(loop)
            if (value := told.get(name, "")).isdecimal():
                found.append((frame.file, frame.function, name, int(value)))
    return tuple(found)


def is_ahead(one: Sequence[Pass], other: Sequence[Pass]) -> str:
    """`step 21` where the one is in a later pass than the other of a loop that both are in; else empty."""
    for mine, theirs in zip(one, other, strict=False):
        if mine[:3] != theirs[:3]:
            return ""
        if mine[3] != theirs[3]:
            return f"{mine[2]} {mine[3]}" if mine[3] > theirs[3] else ""
    return ""


def is_common_path(frames: Sequence[Frame]) -> bool:
    """Whether a rank makes the call at which a stack stands in every pass, or in every so manieth.

    No condition around it asks for anything but loops' counters and what no loop changes, such as the rank; where an exception or
    what was computed led there, it cannot be told.
    """
    for frame in frames:
        if not frame.is_user_code:
            continue
        tree = parse_source(frame.file)
        if tree is None:
            return False
        counters = {_counter_of(loop) for loop in around(frame.file, frame.line, ast.For)}
        changing = changing_names(scope_of(tree, frame.line)) - counters
        if any(True for _ in around(frame.file, frame.line, ast.ExceptHandler)):
            return False
        for one in conditions_at(frame.file, frame.line):
            if one.is_about_ranks and not one.singles_out:
                continue  # `if not (rank == 1 and …)`: the path of all the others
            if any(isinstance(part, ast.Call) for part in ast.walk(one.test)) or _depends_on(one.test, changing):
                return False
    return True


def left_loop(inside: Sequence[Frame], outside: Sequence[Frame]) -> str:
    """`train.py:12`, the loop that one rank is in and another, past it in the same function, has left by what it computed; else empty.

    Loops end by themselves where the data do, and who had fewer or more of these cannot be told.
    """
    for mine, theirs in zip(inside, outside, strict=False):
        if (mine.file, mine.function) != (theirs.file, theirs.function):
            return ""
        for loop in around(mine.file, mine.line, ast.For, ast.While):
            if theirs.line > (loop.end_lineno or 0) and _ends_by_choice(mine.file, loop):  # type: ignore[attr-defined]
                return Frame(mine.file, loop.lineno, mine.function).place  # type: ignore[attr-defined]
        if mine.line != theirs.line:
            return ""
    return ""


def _ends_by_choice(file: str, loop: ast.AST) -> bool:
    """Whether a loop ends by a condition on what it computes, or has a fixed number of passes, which nobody may leave early."""
    tree = parse_source(file)
    if tree is None:
        return False
    if isinstance(loop, ast.While):
        tests = [loop.test]
    elif isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "range":
        if all(isinstance(one, ast.Constant) for one in loop.iter.args):
            return True
        tests = []
    else:
        tests = []
    leaving = [node for node in ast.walk(loop) if isinstance(node, ast.If) and _breaks(node)]
    changing = changing_names(scope_of(tree, loop.lineno)) - {_counter_of(loop)}  # type: ignore[attr-defined]
    return any(_depends_on(test, changing) for test in (*tests, *(node.test for node in leaving)))


def _breaks(node: ast.If) -> bool:
    return any(isinstance(one, ast.Break) for one in node.body)


def _depends_on(test: ast.expr, names: set[str]) -> bool:
    used = {part.id for part in ast.walk(test) if isinstance(part, ast.Name)}
    return bool(used & names)


def _counter_of(loop: ast.AST) -> str:
    """The variable of a loop; of several the first, as in `for step, batch in enumerate(…)`."""
    target = getattr(loop, "target", None)
    if isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    return target.id if isinstance(target, ast.Name) else ""


@lru_cache(maxsize=1024)
def changing_names(scope: ast.AST) -> set[str]:
    """Names that are given a value within a loop of the function."""
    loops = [node for node in ast.walk(scope) if isinstance(node, ast.For | ast.While)]
    return {
        part.id
        for loop in loops
        for part in ast.walk(loop)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
