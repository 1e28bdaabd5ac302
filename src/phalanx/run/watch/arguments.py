"""Reads from the user's source what a rank hands to a collective, a root or a tag, and whether a condition on the rank chose it."""

from __future__ import annotations

import ast

from phalanx.sources.rank_conditions import Variables, condition_at, is_about_ranks, name_of, value_of
from phalanx.sources.user_code import parse_source, scope_of


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
