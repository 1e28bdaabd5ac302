"""Reads conditions on the rank: what they say of each rank, and whether they name who comes or who does not."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from phalanx.sources.user_code import is_about_ranks, stands_for_rank

_RANK = re.compile(
    r"(?:^|[._])(?:global_|world_|local_|node_)?rank$|^(?:task|worker|process)_(?:index|id)$", re.IGNORECASE
)
_FIRST = re.compile(r"is_?(?:main|master|chief|leader|primary|first|coordinator)", re.IGNORECASE)
_COMPARED: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition around a line; `holds` is what its test must be for the line to be reached."""

    test: ast.expr
    holds: bool
    line: int

    @property
    def text(self) -> str:
        """`if rank == 0`, as it stands in the source."""
        told = " ".join(ast.unparse(self.test).split())
        return f"{'if' if self.holds else 'else of if'} {told if len(told) <= 100 else told[:99] + '…'}"

    @property
    def is_about_ranks(self) -> bool:
        """Whether it asks for the rank or a role."""
        return is_about_ranks(self.test)

    def lets_in(self, rank: int) -> bool | None:
        """Whether this rank passes it, whatever else it asks for; None where that decides."""
        value = _value(self.test, rank)
        return value if self.holds or value is None else not value

    @property
    def singles_out(self) -> bool:
        """Whether it names who comes here (`rank == 0`), and not who does not (`rank != 1`, `not (rank == 1 and …)`, `rank > 0`)."""
        return _names_who(self.test, self.holds)


@lru_cache(maxsize=256)
def singles_out(condition: str) -> bool:
    """Whether a condition as people read it (`if rank == 0`, `else of if rank != 0`) names who comes to a line, and not who does not."""
    otherwise = condition.startswith("else of ")
    _, _, test = condition.removeprefix("else of ").partition(" ")
    try:
        parsed = ast.parse(test, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return not otherwise  # too long to be shown whole
    return _names_who(parsed, not otherwise)


def _value(test: ast.expr, rank: int) -> bool | None:
    """What an expression is worth on a rank, as far as the rank alone tells."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _value(test.operand, rank)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [_value(one, rank) for one in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test, rank)
    if _is_rank(test):
        return bool(rank)
    if _FIRST.search(ast.unparse(test)) and isinstance(test, ast.Name | ast.Attribute | ast.Call):
        return rank == 0
    return None


def _compared(test: ast.Compare, rank: int) -> bool | None:
    left, op, right = test.left, test.ops[0], test.comparators[0]
    one, other = _number(left, rank), _number(right, rank)
    if isinstance(op, ast.In | ast.NotIn) and one is not None and isinstance(right, ast.Tuple | ast.List | ast.Set):
        members = [_number(member, rank) for member in right.elts]
        if None not in members:
            return (one in members) is isinstance(op, ast.In)
    compare = _COMPARED.get(type(op))
    return bool(compare(one, other)) if compare is not None and one is not None and other is not None else None


def _number(node: ast.expr, rank: int) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return rank if _is_rank(node) else None


def _is_rank(node: ast.expr) -> bool:
    if stands_for_rank(node):
        return True
    if isinstance(node, ast.Call) and not node.args:
        node = node.func
    return isinstance(node, ast.Name | ast.Attribute) and bool(
        _RANK.search(node.attr if isinstance(node, ast.Attribute) else node.id)
    )


def _names_who(test: ast.expr, holds: bool) -> bool:
    """Follows negations down to the parts that ask for the rank."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _names_who(test.operand, not holds)
    if isinstance(test, ast.BoolOp):
        told = [_names_who(one, holds) for one in test.values if is_about_ranks(one)]
        return bool(told) and all(told)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return holds is isinstance(test.ops[0], ast.Eq | ast.In | ast.Lt | ast.LtE)
    return holds
