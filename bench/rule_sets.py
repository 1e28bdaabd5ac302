"""Sets of rules of a wanted size for the benchmark: the shipped ones, fewer of them, or copies with other words."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from phalanx.knowledge import Rule, load_rules
from phalanx.knowledge.expression import Expression
from phalanx.knowledge.literals import required_literals


def rules_of_size(count: int) -> list[Rule]:
    """`count` rules, all shipped ones if 0; beyond those, copies whose expressions ask for another word as well."""
    shipped = list(load_rules())
    if count == 0 or count <= len(shipped):
        return shipped[: count or None]
    made = list(shipped)
    while len(made) < count:
        number = len(made)
        origin = shipped[number % len(shipped)]
        made.append(
            replace(origin, code=f"ZZ{chr(65 + number // 1000)}{number % 1000:03d}", evidence=_reworded(origin, number))
        )
    return made


def _reworded(rule: Rule, number: int) -> tuple:  # type: ignore[type-arg]
    evidence = []
    for spec in rule.evidence:
        if spec.line is None:
            continue
        literal = max(spec.literals, key=len)
        words = f"{literal[: len(literal) // 2]} variant{number} {literal[len(literal) // 2 :]}"
        pattern = re.escape(words)
        evidence.append(replace(spec, line=Expression(pattern), literals=required_literals(pattern)))
    return tuple(evidence)


def write_literals(path: Path, count: int) -> int:
    """All literals of a set of rules, one a line, for ripgrep -F -f; returns how many."""
    literals = sorted({text for rule in rules_of_size(count) for spec in rule.evidence for text in spec.literals})
    literals = [text for text in literals if "\n" not in text]
    path.write_text("\n".join(literals) + "\n", encoding="utf-8")
    return len(literals)
