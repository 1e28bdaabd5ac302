"""What the user's lines say of numbers that are equal by chance: a loss that is halved, or divided by two ranks."""

from __future__ import annotations

import ast
import re

from phalanx.verification.evidence import Evidence

RANKS = r"(?:world|n_?proc|num_proc|n_?ranks|num_ranks|replicas|\bws\b|nprocs|num_gpus|n_gpus|ngpus|\.size\(\))"
_OF_RANK = re.compile(r"rank|main_process|process_zero|global_zero|is_(?:master|main|chief)", re.IGNORECASE)
_CHANGES = re.compile(r"[a-z]_$|^load_state_dict$|^reset_parameters$")
_DIVISOR = re.compile(r"(?:/=?|\.div_?\()\s*\(?\s*(?:float\()?([A-Za-z_][\w.]*(?:\(\))?)")


def tree_of(evidence: Evidence, name: str) -> ast.Module:
    """The parsed file of the user's; empty if it cannot be read."""
    try:
        return ast.parse("\n".join(evidence.lines(name)))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def changes_on_some_ranks(evidence: Evidence, name: str) -> tuple[str, str] | None:
    """The one line of a file that changes tensors in place or loads weights under a question for the rank, and that question."""
    found: dict[str, str] = {}
    for node in ast.walk(tree_of(evidence, name)):
        if isinstance(node, ast.If) and _OF_RANK.search(test := ast.unparse(node.test)):
            for part in (inner for statement in node.body for inner in ast.walk(statement)):
                if (
                    isinstance(part, ast.Call)
                    and isinstance(part.func, ast.Attribute)
                    and _CHANGES.search(part.func.attr)
                ):
                    found.setdefault(f"{name}:{part.lineno}", test)
    tests = set(found.values())
    return next(iter(found.items())) if len(tests) == 1 else None


def divides_by_ranks(evidence: Evidence, place: str) -> bool:
    """Whether a line divides by a name that stands for the number of ranks: by what it is called, or by where it comes from."""
    for name in _DIVISOR.findall(evidence.source(place)):
        if re.search(RANKS, name, re.IGNORECASE) or _comes_from_ranks(evidence, place, name):
            return True
    return False


def _comes_from_ranks(evidence: Evidence, place: str, name: str) -> bool:
    """Some line of the same file assigns it from the number of ranks."""
    given = re.compile(rf"(?:^|[\s,(]){re.escape(name)}\s*(?:,[^=]*)?=[^=].*{RANKS}", re.IGNORECASE)
    return any(given.search(line) for line in evidence.lines(place.rpartition(":")[0]))
