"""What a written condition on the rank says: on which ranks it holds, and whether all ranks agree on it."""

from __future__ import annotations

import ast


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


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)


def polarity(test: ast.expr, rank: int) -> bool | None:
    """Whether a plain rank condition holds on a rank; None if that cannot be said."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = polarity(test.operand, rank)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [polarity(value, rank) for value in test.values]
        wanted = isinstance(test.op, ast.Or)
        return wanted if wanted in parts else (None if None in parts else not wanted)
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
