"""Reads the user's own source where it is on this machine: a line's text, the statements around it, and which names stand for the rank."""

from __future__ import annotations

import ast
import re
import stat
from functools import lru_cache
from pathlib import Path

from phalanx.model import Frame

_LARGEST = 2 << 20
# What a script calls its rank by, whatever it names it: `me = json.loads(os.environ["TF_CONFIG"])["task"]["index"]`.
_TOLD_RANK = re.compile(
    r"""(?:^|[._])(?:rank|process_index|task_index|worker_index|task_id|process_id)(?:\(\))?$"""
    r"""|\[['"]task['"]\]\[['"]index['"]\]$|['"](?:\w*RANK|SLURM_PROCID|JAX_PROCESS_ID)['"](?:, [^,()]*)?[\])]+$"""
)
_TOLD_ROLE = re.compile(r"""\[['"]task['"]\](?:\[['"]type['"]\])?$|(?:^|[._])task_type(?:\(\))?$""")


@lru_cache(maxsize=1024)  # ranks of one job stand at the same lines
def scope_of(tree: ast.Module, line: int) -> ast.AST:
    """The innermost function around a line, or the module."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=tree)


def around(file: str, line: int, *kinds: type[ast.AST]) -> list[ast.AST]:
    """The statements of these kinds within the line's function that hold the line, the outermost first."""
    tree = parse_source(file)
    if tree is None:
        return []
    held = (node for node in ast.walk(scope_of(tree, line)) if isinstance(node, kinds))
    holding = [node for node in held if node.lineno < line <= (node.end_lineno or 0)]  # type: ignore[attr-defined]
    return sorted(holding, key=lambda node: node.lineno)  # type: ignore[attr-defined]


def data_loop(frame: Frame, left_at: int | None = None) -> ast.For | None:
    """The innermost loop over data that holds a line, and that `left_at`, a line of the same function, lies behind.

    A loop with a number of passes or with a `break` of its own may be left for another reason than that the data ended.
    """
    loops = [node for node in around(frame.file, frame.line, ast.For) if isinstance(node, ast.For)]
    for loop in reversed(loops):
        counted = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) in (
            "range",
            "itertools.count",
            "count",
        )
        if counted or any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(loop)):
            continue
        if left_at is None or left_at > (loop.end_lineno or 0):
            return loop
    return None


def leaves_early(frame: Frame) -> bool:
    """Whether the function around a line may end the process or return before its last statement."""
    tree = parse_source(frame.file)
    if tree is None:
        return True
    scope = scope_of(tree, frame.line)
    last = scope.body[-1] if isinstance(scope, ast.FunctionDef) else None
    calls = (ast.unparse(node.func) for node in ast.walk(scope) if isinstance(node, ast.Call))
    returns = any(isinstance(node, ast.Return) and node is not last for node in ast.walk(scope))
    return returns or any(name.rsplit(".", 1)[-1] in ("exit", "_exit", "quit") for name in calls)


def parse_source(file: str) -> ast.Module | None:
    """The user's file; None if it cannot be read. Parsed once, until it changes."""
    stamp = _stamp(file)
    return _parse(file, stamp) if stamp is not None else None


@lru_cache(maxsize=64)
def _parse(file: str, stamp: float) -> ast.Module | None:
    try:
        return _with_aliases(ast.parse(Path(file).read_bytes()))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _with_aliases(tree: ast.Module) -> ast.Module:
    """The tree, with names that are only ever given the rank or the role marked as such."""
    given: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        for name, value in _assigned(node):
            text = ast.unparse(value)
            given.setdefault(name, set()).add(
                "rank" if _TOLD_RANK.search(text) else "role" if _TOLD_ROLE.search(text) else ""
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and len(told := given.get(node.id, {""})) == 1 and (what := min(told)):
            node.stands_for = what  # type: ignore[attr-defined]
    return tree


def _assigned(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """Names and what they are given; of `a, b = one, two` each its own."""
    if isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        return [(node.target.id, node.value)] if isinstance(node.target, ast.Name) else []
    if isinstance(node, ast.For | ast.comprehension):
        return [(one.id, node.iter) for one in ast.walk(node.target) if isinstance(one, ast.Name)]
    if not isinstance(node, ast.Assign):
        return []
    found: list[tuple[str, ast.expr]] = []
    for target in node.targets:
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        found += [(one.id, value) for one, value in pairs if isinstance(one, ast.Name)]
    return found


def source_line(file: str, line: int) -> str:
    """The text of a line; empty if it cannot be read."""
    if _stamp(file) is None:
        return ""
    try:
        with Path(file).open(encoding="utf-8", errors="replace") as lines:
            return next((text.strip()[:200] for number, text in enumerate(lines, 1) if number == line), "")
    except OSError:
        return ""


def _stamp(file: str) -> float | None:
    """When the file was written. None for what is no Python file: a log may name any path, a pipe or a key among them."""
    try:
        status = Path(file).stat() if file.endswith(".py") else None
    except (OSError, ValueError):
        return None
    if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
        return None
    return status.st_mtime
