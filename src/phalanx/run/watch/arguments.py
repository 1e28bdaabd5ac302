"""Reads from the user's source what a rank hands to a collective, a root or a tag, and whether a condition on the rank chose it.

Values come from the variables of the rank's frames, as text; what cannot be told from them for certain is not guessed.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from phalanx.sources.user_code import condition_at, is_about_ranks, parse_source, scope_of

_NUMBER = re.compile(r"-?\d{1,9}")
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
    size: int

    @classmethod
    def of(cls, told: Mapping[str, str], rank: int, size: int) -> Variables:
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
    if isinstance(node, ast.Name):
        return known.numbers.get(node.id)
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
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        left, right = value_of(node.left, known), value_of(node.comparators[0], known)
        return None if left is None or right is None else int(_COMPARISONS[type(node.ops[0])](left, right))
    return None


def argument_at(file: str, line: int, call: str, names: tuple[str, ...], place: int) -> tuple[ast.expr, ast.AST] | None:
    """What the call of this name in this line is given under one of the names or at this place; and the function around it."""
    tree = parse_source(file)
    if tree is None:
        return None
    scope = scope_of(tree, line)
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and name_of(node) == call and node.lineno <= line <= (node.end_lineno or 0):
            given = next((word.value for word in node.keywords if word.arg in names), None)
            given = given or (node.args[place] if len(node.args) > place else None)
            return (given, scope) if given is not None else None
    return None


def chosen_aside(file: str, given: ast.expr, scope: ast.AST, known: Variables) -> str:
    """The condition on the rank that gave an argument the value which it has here; empty where it has the common one."""
    if isinstance(given, ast.IfExp):
        return _of_choice(given, known)
    if not isinstance(given, ast.Name):
        return ""
    value = known.numbers.get(given.id)
    common: set[int | None] = set()
    aside = ""
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign) or not any(
            isinstance(target, ast.Name) and target.id == given.id for target in node.targets
        ):
            continue
        if isinstance(node.value, ast.IfExp):
            return _of_choice(node.value, known)
        under = condition_at(file, node.lineno)
        if under is None or under.startswith("else"):
            common.add(value_of(node.value, known))
        elif value_of(node.value, known) == value:
            aside = under
    return aside if common and value not in common else ""


def _of_choice(node: ast.IfExp, known: Variables) -> str:
    """`1 if rank == 2 else 0`: aside is the rank for which an equality holds, or for which an inequality does not."""
    test = value_of(node.test, known)
    if test is None or not is_about_ranks(node.test):
        return ""
    kinds = {
        type(one.ops[0])
        for one in ast.walk(node.test)
        if isinstance(one, ast.Compare) and len(one.ops) == 1 and is_about_ranks(one)
    }
    negated = any(isinstance(one, ast.Not) for one in ast.walk(node.test))
    special = {frozenset({ast.Eq}): 1, frozenset({ast.NotEq}): 0}.get(frozenset(kinds))
    if special is None or negated or bool(test) is not bool(special):
        return ""
    return f"{'if' if test else 'else of if'} {ast.unparse(node.test)}"
