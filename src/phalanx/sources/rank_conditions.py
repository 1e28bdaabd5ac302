"""Reads conditions on the rank in the user's source: what leads to a line, what it says of each rank, and whether it names who comes.

Expressions are worked out from the variables that are known; what cannot be told from them for certain is not guessed.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from phalanx.model import Frame
from phalanx.sources.user_code import parse_source, scope_of

_OF_RANK = re.compile(
    r"rank|is_?main|is_?master|is_?chief|is_?leader|is_primary|world_size|task_index|worker_index|process_index|replica_id",
    re.IGNORECASE,
)
_RANK = re.compile(
    r"(?:^|[._])(?:global_|world_|local_|node_)?rank$|^(?:task|worker|process)_(?:index|id)$", re.IGNORECASE
)
_FIRST = re.compile(r"is_?(?:main|master|chief|leader|primary|first|coordinator)", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d{1,9}")
_LONGEST = 100
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitXor: operator.xor,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Variables:
    """What is known where an expression is to be worth something."""

    numbers: Mapping[str, int]
    rank: int
    size: int | None = None

    @classmethod
    def of(cls, told: Mapping[str, str], rank: int, size: int | None) -> Variables:
        """The whole numbers among a frame's variables, which are given as text."""
        return cls({name: int(value) for name, value in told.items() if _NUMBER.fullmatch(value)}, rank, size)


def name_of(call: ast.Call) -> str:
    """The last part of what is called: `irecv` of `dist.irecv(…)`."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def value_of(node: ast.expr | None, known: Variables) -> int | None:
    """What an expression of whole numbers is worth, or a condition on them (0 or 1); None for any other."""
    if isinstance(node, ast.Constant):
        return int(node.value) if isinstance(node.value, int) else None
    if isinstance(node, ast.Name | ast.Attribute | ast.Call) and (told := ast.unparse(node)) in known.numbers:
        return known.numbers[told]
    if isinstance(node, ast.Call) and not node.args:
        return {"get_rank": known.rank, "get_world_size": known.size}.get(name_of(node))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = value_of(node.left, known), value_of(node.right, known)
        if left is None or right is None or (right == 0 and isinstance(node.op, ast.FloorDiv | ast.Mod)):
            return None
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.IfExp):
        test = value_of(node.test, known)
        return None if test is None else value_of(node.body if test else node.orelse, known)
    return _truth_of(node, known)


def _truth_of(node: ast.expr | None, known: Variables) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = value_of(node.operand, known)
        return None if inner is None else int(not inner)
    if isinstance(node, ast.BoolOp):
        ends = isinstance(node.op, ast.Or)  # what one operand decides whatever the others are
        found = [value_of(one, known) for one in node.values]
        if any(one is not None and bool(one) is ends for one in found):
            return int(ends)
        return None if None in found else int(not ends)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    op, left, right = node.ops[0], value_of(node.left, known), node.comparators[0]
    if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List | ast.Set):
        members = [value_of(one, known) for one in right.elts]
        return None if left is None or None in members else int((left in members) is isinstance(op, ast.In))
    other = value_of(right, known)
    compare = _COMPARISONS.get(type(op))
    return None if compare is None or left is None or other is None else int(compare(left, other))


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition around a line; `holds` is what its test must be for the line to be reached."""

    test: ast.expr
    holds: bool
    line: int
    word: str = "if"  # or while

    @property
    def text(self) -> str:
        """`if rank == 0`, as it stands in the source."""
        told = " ".join(ast.unparse(self.test).split())
        told = told if len(told) <= _LONGEST else told[: _LONGEST - 1] + "…"
        return f"{'' if self.holds else 'else of '}{self.word} {told}"

    @property
    def is_about_ranks(self) -> bool:
        """Whether it asks for the rank or a role."""
        return is_about_ranks(self.test)

    def lets_in(self, rank: int) -> bool | None:
        """Whether this rank passes it, whatever else it asks for; None where that decides."""
        asked = [node for node in ast.walk(self.test) if isinstance(node, ast.Name | ast.Attribute | ast.Call)]
        known = {ast.unparse(node): int(rank == 0) for node in asked if _FIRST.search(ast.unparse(node))}
        known |= {ast.unparse(node): rank for node in asked if _is_rank(node)}
        value = value_of(self.test, Variables(known, rank))
        return None if value is None else bool(value) is self.holds

    @property
    def singles_out(self) -> bool:
        """Whether it names who comes here (`rank == 0`), and not who does not (`rank != 1`, `not (rank == 1 and …)`, `rank > 0`)."""
        return _names_who(self.test, self.holds)


def conditions_at(file: str, line: int) -> list[Condition]:
    """All conditions around a line within its function, the outermost first."""
    tree = parse_source(file)
    found = []
    for node in ast.walk(scope_of(tree, line)) if tree is not None else ():
        if isinstance(node, ast.If | ast.While) and node.body[0].lineno <= line <= (node.end_lineno or 0):
            is_below = line <= (node.body[-1].end_lineno or 0)
            if is_below or node.orelse[0].lineno <= line:
                word = "if" if isinstance(node, ast.If) else "while"
                found.append(Condition(node.test, is_below, node.lineno, word))
    return sorted(found, key=lambda one: one.line)


def condition_at(file: str, line: int) -> str | None:
    """`if rank == 2` for a line below it, `else of if rank == 0` for one in the other branch; None if there is none."""
    on_ranks = [one for one in conditions_at(file, line) if one.is_about_ranks]
    return on_ranks[-1].text if on_ranks else None


def condition_above(frames: tuple[Frame, ...]) -> tuple[str, Frame] | None:
    """The innermost condition on the rank that leads to where a stack stands, and the frame that stands under it."""
    for frame in reversed(frames):
        if frame.is_user_code and (found := condition_at(frame.file, frame.line)) is not None:
            return found, frame
    return None


def is_about_ranks(test: ast.expr) -> bool:
    """Whether an expression asks for the rank, or for a role that only some ranks have."""
    return bool(_OF_RANK.search(ast.unparse(test))) or any(hasattr(node, "stands_for") for node in ast.walk(test))


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


def _is_rank(node: ast.AST) -> bool:
    if getattr(node, "stands_for", "") == "rank":
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
