"""What a written condition on the rank says: on which ranks it holds, and whether all ranks agree on it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from phalanx.lint.tree import Scope


def asks_whether_distributed(node: ast.Compare) -> bool:
    """`local_rank == -1`, `rank is None`, `rank >= 0`: all ranks agree on it."""
    if len(node.ops) != 1:
        return False
    operator, other = node.ops[0], node.comparators[0]
    value = ast.literal_eval(other) if _is_number(other) else other.value if isinstance(other, ast.Constant) else ""
    if isinstance(operator, (ast.Is, ast.IsNot)) or value is None:
        return True
    if value == -1:
        return isinstance(operator, (ast.Eq, ast.NotEq, ast.Gt, ast.LtE))
    return value == 0 and isinstance(operator, (ast.GtE, ast.Lt))


def is_looked_up(test: ast.Compare, scope: Scope) -> bool:
    """`key in cache` in a function that itself fills `cache[key]`."""
    if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.In, ast.NotIn)):
        return False
    kept = f"{ast.unparse(test.comparators[0])}[{ast.unparse(test.left)}]"
    stored = (n for n in ast.walk(scope.node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
    return any(ast.unparse(item) == kept for item in stored)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)


def are_complements(first: ast.expr, second: ast.expr, is_rank: Callable[[ast.expr], bool]) -> bool:
    """Whether every rank is on exactly one side of the two; what both ask beside the rank (`debug and …`) is left out."""
    asked = [{ast.unparse(part): part for part in _conjuncts(test)} for test in (first, second)]
    own = [[part for text, part in one.items() if text not in other] for one, other in (asked, asked[::-1])]
    sides = [[_all(polarity(part, rank, is_rank) for part in parts) for parts in own] for rank in (0, 1)]
    return all(a is not None and b is not None and a is not b for a, b in sides)


def _conjuncts(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _all(parts: Iterable[bool | None]) -> bool | None:
    found = list(parts)
    return False if False in found else None if None in found else True


def polarity(test: ast.expr, rank: int, is_rank: Callable[[ast.expr], bool]) -> bool | None:
    """Whether a condition holds on a rank; None if it asks for something else, or that cannot be said."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = polarity(test.operand, rank, is_rank)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [polarity(value, rank, is_rank) for value in test.values]
        wanted = isinstance(test.op, ast.Or)
        return wanted if wanted in parts else (None if None in parts else not wanted)
    if not is_rank(test):
        return None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        try:
            other = ast.literal_eval(test.comparators[0])
        except (ValueError, TypeError, SyntaxError):
            return None
        return _compare(test.ops[0], rank, other)
    text = ast.unparse(test).lower()
    if any(word in text for word in ("main", "master", "chief", "zero", "rank0", "rank_0")):
        return rank == 0
    return rank != 0 if text.endswith(("rank", "rank()")) else None


def _compare(operator: ast.cmpop, rank: int, other: object) -> bool | None:
    if isinstance(operator, ast.Eq):
        return rank == other
    if isinstance(operator, ast.NotEq):
        return rank != other
    if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(other, (list, tuple, set)):
        return (rank in other) is isinstance(operator, ast.In)
    if isinstance(other, (int, float)):
        if isinstance(operator, ast.Gt):
            return rank > other
        if isinstance(operator, ast.Lt):
            return rank < other
    return None
