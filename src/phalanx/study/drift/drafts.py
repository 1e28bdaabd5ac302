"""Drafts of rules for frequent messages that no rule knows: in the rule format, status `preview`, accepted by the loader."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phalanx.knowledge import FIX_PATTERNS, SYMPTOMS, Rule, RuleError
from phalanx.knowledge.figures import frequent_fixes
from phalanx.knowledge.loader import parse_rule
from phalanx.study.drift.messages import expression_of

_FIRST_CODE = 900  # drafts take codes from the end, so that they do not meet those in use
_WORDS = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A message that no rule knows: its template, a line as printed, and the issues that show it."""

    template: str
    line: str
    issues: tuple[str, ...]
    symptom: str
    fix: str | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A rule file's text and where it would stand."""

    code: str
    path: Path
    text: str


def write_drafts(unknowns: Sequence[Unknown], rules: Sequence[Rule]) -> tuple[list[Draft], list[tuple[str, str]]]:
    """Drafts that the loader accepts, and the messages of which none could be made, with the reason."""
    capitals = _capitals(rules)
    used = {rule.code for rule in rules}
    drafts: list[Draft] = []
    refused: list[tuple[str, str]] = []
    for unknown in unknowns:
        code = next(
            (
                name
                for number in range(_FIRST_CODE, 1000)
                if (name := f"{capitals[unknown.symptom]}{number}") not in used
            ),
            None,
        )
        if code is None:
            refused.append((unknown.template, "all codes for drafts of this symptom are used"))
            continue
        cause = _cause(unknown.template)
        draft = Draft(code, Path(unknown.symptom) / f"{cause}.md", _render(unknown, code, cause))
        try:
            parse_rule(draft.text, draft.path)
        except RuleError as error:
            refused.append((unknown.template, str(error)))
            continue
        used.add(code)
        drafts.append(draft)
    return drafts, refused


def _capitals(rules: Sequence[Rule]) -> dict[str, str]:
    """The capitals of each symptom's codes, as the rules have them."""
    seen: dict[str, Counter[str]] = {}
    for rule in rules:
        seen.setdefault(rule.symptom, Counter())[rule.code[:3]] += 1
    return {symptom: seen[symptom].most_common(1)[0][0] if symptom in seen else "FOT" for symptom in SYMPTOMS}


def _cause(template: str) -> str:
    words = _WORDS.findall(template.lower().replace("<", " ").replace(">", " "))
    kept = [
        word
        for word in words
        if word not in ("number", "path", "name", "pointer", "shape", "host", "address", "the", "and", "for")
    ]
    return "-".join(kept[:6]) or "unknown-message"


def _render(unknown: Unknown, code: str, cause: str) -> str:
    fix = unknown.fix if unknown.fix in FIX_PATTERNS else next(iter(frequent_fixes(unknown.symptom, None)), "other")
    pattern = FIX_PATTERNS[fix]
    expression = expression_of(unknown.template)
    # A literal string of TOML holds no quote of its own kind; JSON's string is TOML's basic one.
    line = f"'{expression}'" if "'" not in expression else json.dumps(expression, ensure_ascii=False)
    issues = ", ".join(json.dumps(issue, ensure_ascii=False) for issue in unknown.issues[:5])
    shown = unknown.line.replace("~~~", "---").replace("\x00", "")
    return f"""+++
code = "{code}"
symptom = "{unknown.symptom}"
cause = "{cause}"
status = "preview"
sources = [{issues}]
claims = "symptom"
blame = "nobody"
confidence = "possible"
priority = 30

[[evidence]]
role = "root"
line = {line}

[[fix]]
pattern = "{fix}"
title = {json.dumps(pattern.do, ensure_ascii=False)}
do = {json.dumps(pattern.do, ensure_ascii=False)}
why = "What cured this symptom most often in the study; to be replaced by what cured this message."
+++
# A message that no rule explains yet: {_plain(unknown.template)}

A message seen in {len(unknown.issues)} collected issues that no rule explains.

## Meaning
Draft: read the issues under References and say what the message means.

## Impact
Draft: not known yet.

## References
{chr(10).join(f"- {issue}" for issue in unknown.issues[:5])}

## Tests
### fires: as it was reported
~~~log
{shown}
~~~

### silent: a healthy end
~~~log
epoch 3 step 100 done
training finished
~~~
"""


def _plain(template: str) -> str:
    """A template in a title: without what templates of texts would fill in."""
    return re.sub(r"[{}#]", "", template)[:100]
