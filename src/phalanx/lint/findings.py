"""A rule's hit as an ordinary finding of the report."""

from __future__ import annotations

import ast

from phalanx.knowledge.fixes import FIX_PATTERNS
from phalanx.lint.rule import Hit, Loaded
from phalanx.lint.tree import Module
from phalanx.model import Evidence, Finding, Fix, Place, Role, Safety, Stage

_AROUND = 2


def finding_of(hit: Hit, loaded: Loaded, module: Module, shown: str) -> Finding:
    """The finding; `shown` is the file as the user named it."""
    rule = loaded.rule
    line = getattr(hit.node, "lineno", 1)
    fix = Fix(
        pattern=rule.pattern,
        title=FIX_PATTERNS[rule.pattern].title,
        do=hit.do or rule.do,
        why="",
        confirm=f"phalanx check {shown}",
        safety=Safety.SAFE if hit.edits else Safety.DISPLAY,
        where=Place(shown, line),
    )
    root = Evidence(None, shown, line, module.line(line), Role.ROOT, context=_context(module, line))
    others = tuple(
        Evidence(None, shown if file == module.file else file, number, text, Role.SUPPORTS)
        for file, number, text in hit.also
    )
    return Finding(
        symptom=rule.symptom,
        stage=Stage.of_symptom(rule.symptom),
        cause=rule.cause,
        rule=rule.code,
        confidence=hit.confidence or rule.confidence,
        distributed_specific=rule.is_distributed,
        distributed_why=loaded.why,
        culprit_ranks=(),
        victim_ranks=(),
        affected_ranks=(),
        title=hit.message,
        headline=f"{hit.message.rstrip('.')}.",
        summary=loaded.why,
        detail=loaded.why,
        place=Place(shown, line, text=module.line(line)),
        fixes=(fix,),
        evidence=(root, *others),
    )


def _context(module: Module, line: int) -> tuple[tuple[int, str], ...]:
    first = max(1, line - _AROUND)
    return tuple(
        (number, module.lines[number - 1]) for number in range(first, min(len(module.lines), line + _AROUND) + 1)
    )


def span(node: ast.AST, module: Module) -> tuple[int, int]:
    """First and last line of the simple statement around a node; of a compound one only its first line."""
    statement = module.statement(node)
    first = getattr(node, "lineno", 1)
    if hasattr(statement, "body"):
        return first, getattr(node, "end_lineno", first) if not hasattr(node, "body") else first
    return min(first, getattr(statement, "lineno", first)), getattr(statement, "end_lineno", first)
