"""Writes the table of rules for the documentation: `python -m phalanx.lint.page > docs/lint-rules.md`."""

from __future__ import annotations

import sys

from phalanx.lint.rule import load_rules

_HEAD = """\
# The rules of `phalanx check train.py`

One file each under `src/phalanx/lint/rules/<group>/`; `phalanx rules explain CODE` shows what a rule does, why, and an
example with its correction. This page is made by `python -m phalanx.lint.page`.
"""


def page() -> str:
    """The page, group by group."""
    rules = load_rules()
    lines = [_HEAD, f"{len(rules)} rules; those with (−) are asked only where `select` or `extend-select` names them."]
    for group in dict.fromkeys(loaded.group for loaded in rules):
        lines.append(f"\n## {group}\n\n| code | name | what it finds | symptom |\n|---|---|---|---|")
        lines += [
            f"| {loaded.rule.code}{'' if loaded.rule.default else ' (−)'} | {loaded.name} | {loaded.title} | `{loaded.rule.symptom}` |"
            for loaded in rules
            if loaded.group == group
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
