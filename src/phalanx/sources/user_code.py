"""Reads the user's own source where it is on this machine: a line's text, and the condition on the rank above it."""

from __future__ import annotations

import ast
import re
import stat
from functools import lru_cache
from pathlib import Path

from phalanx.model import Frame

_LARGEST = 2 << 20
_OF_RANK = re.compile(
    r"rank|is_?main|is_?master|is_?chief|is_?leader|is_primary|world_size|task_index|worker_index|process_index|replica_id",
    re.IGNORECASE,
)
# What a script calls its rank by, whatever it names it: `me = json.loads(os.environ["TF_CONFIG"])["task"]["index"]`.
_TOLD_RANK = re.compile(
    r"""(?:^|[._])(?:rank|process_index|task_index|worker_index|task_id|process_id)(?:\(\))?$"""
    r"""|\[['"]task['"]\]\[['"]index['"]\]$|['"](?:\w*RANK|SLURM_PROCID|JAX_PROCESS_ID)['"](?:, [^,()]*)?[\])]+$"""
)
_TOLD_ROLE = re.compile(r"""\[['"]task['"]\](?:\[['"]type['"]\])?$|(?:^|[._])task_type(?:\(\))?$""")
_LONGEST = 100


def condition_above(frames: tuple[Frame, ...]) -> tuple[str, Frame] | None:
    """The innermost condition on the rank that leads to where a stack stands, and the frame that stands under it."""
    for frame in reversed(frames):
        if frame.is_user_code and (found := condition_at(frame.file, frame.line)) is not None:
            return found, frame
    return None


def condition_at(file: str, line: int) -> str | None:
    """`if rank == 2` for a line below it, `else of if rank == 0` for one in the other branch; None if there is none."""
    tree = parse_source(file)
    if tree is None:
        return None
    found: str | None = None
    node: ast.AST = tree
    while True:  # the way down from the module to the line; the last match is the innermost
        inner = next((child for child in _statements(node) if child.lineno <= line <= (child.end_lineno or 0)), None)
        if inner is None:
            return found
        if isinstance(inner, ast.If | ast.While) and (told := _tell(inner, line)) is not None:
            found = told
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found = None  # a condition around a definition says nothing about who calls it
        node = inner


def is_about_ranks(test: ast.expr) -> bool:
    """Whether an expression asks for the rank, or for a role that only some ranks have."""
    return bool(_OF_RANK.search(ast.unparse(test))) or any(hasattr(node, "stands_for") for node in ast.walk(test))


def stands_for_rank(node: ast.AST) -> bool:
    """Whether a name was given the number of the rank, in the file that it stands in."""
    return getattr(node, "stands_for", "") == "rank"


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


def _tell(node: ast.If | ast.While, line: int) -> str | None:
    test = " ".join(ast.unparse(node.test).split())
    if not is_about_ranks(node.test) or node.lineno <= line < node.body[0].lineno:
        return None
    test = test if len(test) <= _LONGEST else test[: _LONGEST - 1] + "…"
    word = "if" if isinstance(node, ast.If) else "while"
    if line <= (node.body[-1].end_lineno or 0):
        return f"{word} {test}"
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and node.orelse[0].lineno <= line:
        return f"else of {word} {test}" if not is_about_ranks(node.orelse[0].test) else None
    return f"else of {word} {test}"


def _statements(node: ast.AST) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for name in ("body", "orelse", "finalbody"):
        found += [child for child in getattr(node, name, []) if isinstance(child, ast.stmt)]
    for holder in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        found += holder.body
    return found


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
