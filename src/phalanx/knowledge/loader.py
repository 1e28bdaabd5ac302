"""Reads one rule file: TOML front matter between `+++` lines, then Markdown for people, then test cases.

Loading runs no code of the file: it is data. What is wrong with a file is said with its name and the remedy.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from phalanx.knowledge.expression import Expression
from phalanx.knowledge.fact_spec import parse_fact
from phalanx.knowledge.fixes import FIX_PATTERNS
from phalanx.knowledge.literals import check_syntax, required_literals
from phalanx.knowledge.literals import is_common as is_common_literal
from phalanx.knowledge.rule import Blame, Case, Claims, EvidenceSpec, FixSpec, Ranks, Rule, RuleError
from phalanx.knowledge.shared_lines import SHARED_LINES
from phalanx.knowledge.taxonomy import SYMPTOMS
from phalanx.model import Confidence, Role, Safety, Stage

SECTIONS = (
    "Meaning",
    "Impact",
    "References",
    "Tests",
)  # that every rule has; `Confirm` where it says more than a fix does
STATUSES = ("preview", "stable", "deprecated", "removed")
_KEYS = frozenset(
    [
        "code",
        "symptom",
        "cause",
        "status",
        "frameworks",
        "libraries",
        "sources",
        "claims",
        "blame",
        "fatal",
        "distributed",
        "priority",
        "confidence",
        "overlaps",
        "by_stage",
        "headline",
        "evidence",
        "fix",
    ]
)
_EVIDENCE_KEYS = frozenset(["role", "ranks", "line", "shared", "fact", "where", "exit", "outside"])
_FIX_KEYS = frozenset(["pattern", "title", "do", "why", "confirm", "safety", "when", "given", "only", "shell"])


def load_rule(path: Path) -> Rule:
    """Parse and check one rule file."""
    return parse_rule(path.read_text(encoding="utf-8"), path)


def parse_rule(text: str, path: Path) -> Rule:
    """Parse and check a rule file's text; `path` is for messages."""
    match = re.match(r"\+\+\+\n(.*?)\n\+\+\+\n(.*)\Z", text, re.DOTALL)
    if match is None:
        raise RuleError(path, "must open with TOML front matter between two lines of +++")
    try:
        front = tomllib.loads(match[1])
    except tomllib.TOMLDecodeError as error:
        raise RuleError(path, f"front matter is not TOML: {error}") from error
    try:
        return _build(front, match[2], path)
    except RuleError:
        raise
    except (KeyError, ValueError, TypeError, re.error) as error:
        reason = f"front matter lacks {error}" if isinstance(error, KeyError) else str(error)
        raise RuleError(path, reason) from error


def _build(front: dict[str, Any], body: str, path: Path) -> Rule:
    _refuse_unknown("key", front.keys() - _KEYS, path)
    code = front["code"]
    if not re.fullmatch(r"[A-Z]{3}\d{3}", code):
        raise RuleError(path, f"code {code!r} must be three capitals and three digits, like HNG004")
    if front["status"] not in STATUSES:
        raise RuleError(path, f"status must be one of {', '.join(STATUSES)}")
    by_stage = {Stage[key.upper()]: value for key, value in front.get("by_stage", {}).items()}
    for symptom in (front["symptom"], *by_stage.values()):
        if symptom not in SYMPTOMS:
            raise RuleError(path, f"unknown symptom {symptom!r}; `phalanx rules symptoms` lists the 30")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", front["cause"]):
        raise RuleError(path, f"cause {front['cause']!r} must be kebab case")
    evidence = tuple(_evidence(item, path) for item in front.get("evidence", ()))
    fixes = tuple(_fix(item, path) for item in front.get("fix", ()))
    is_removed = front["status"] == "removed"
    title, summary, sections = _split_body(body, path, () if is_removed else SECTIONS)
    cases = _cases(sections.get("Tests", ""), path)
    if not is_removed:
        if not any(spec.role is Role.ROOT for spec in evidence):
            raise RuleError(path, 'needs at least one [[evidence]] with role = "root"')
        if not fixes:
            raise RuleError(path, "needs at least one [[fix]]")
        if not any(case.fires for case in cases) or all(case.fires for case in cases):
            raise RuleError(path, "## Tests needs at least one `### fires:` and one `### silent:` case")
    blame = Blame(front.get("blame", "printer"))
    if blame is Blame.NAMED and not any(s.fact or (s.line and "(?P<culprit>" in s.line.pattern) for s in evidence):
        raise RuleError(path, 'blame = "named" needs a fact, or a capture (?P<culprit>…) in some line expression')
    return Rule(
        code=code,
        symptom=front["symptom"],
        cause=front["cause"],
        status=front["status"],
        path=path,
        title=title,
        summary=summary,
        sections=sections,
        evidence=evidence,
        fixes=fixes,
        frameworks=tuple(front.get("frameworks", ())),
        libraries=tuple(front.get("libraries", ())),
        sources=tuple(front.get("sources", ())),
        claims=Claims(front.get("claims", "cause")),
        blame=blame,
        fatal=front.get("fatal", True),
        distributed=front.get("distributed"),
        priority=front.get("priority", 50),
        confidence=Confidence(front.get("confidence", "likely")),
        overlaps=frozenset(front.get("overlaps", ())),
        by_stage=by_stage,
        headlines=_headlines(front.get("headline", ())),
        cases=cases,
    )


def _headlines(given: str | list[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _refuse_unknown(kind: str, names: Any, path: Path) -> None:
    if names:
        raise RuleError(path, f"unknown {kind}: {', '.join(sorted(names))}")


def _evidence(item: dict[str, Any], path: Path) -> EvidenceSpec:
    _refuse_unknown("evidence key", item.keys() - _EVIDENCE_KEYS, path)
    if "shared" in item:
        _refuse_unknown("shared expression", {item["shared"]} - SHARED_LINES.keys(), path)
        item = {"line": SHARED_LINES[item["shared"]], **item}
    given = [key for key in ("line", "fact", "exit") if key in item]
    if len(given) != 1 and given != ["line", "exit"]:
        raise RuleError(
            path, "each [[evidence]] has one of line, fact, exit; or line and exit, of which either will do"
        )
    role, ranks = Role(item["role"]), Ranks(item.get("ranks", "any"))
    if "where" in item and given != ["fact"]:
        raise RuleError(path, "`where` is for the fields of a `fact`")
    if given == ["fact"]:
        return EvidenceSpec(role, ranks, fact=parse_fact(item["fact"], item.get("where", {})))
    exits = item.get("exit", [])
    codes = frozenset(exits if isinstance(exits, list) else [exits])
    if given == ["exit"]:
        return EvidenceSpec(role, ranks, exit_codes=codes)
    literals = required_literals(item["line"])
    is_common = any(map(is_common_literal, literals))
    line, outside = Expression(item["line"]), _checked(item["outside"]) if "outside" in item else None
    return EvidenceSpec(
        role, ranks, line=line, exit_codes=codes, literals=literals, is_common=is_common, outside=outside
    )


def _checked(pattern: str, flags: int = 0) -> Expression:
    """The expression, refused now if its syntax is wrong rather than when it is first used."""
    check_syntax(pattern)
    return Expression(pattern, flags)


def _fix(item: dict[str, Any], path: Path) -> FixSpec:
    _refuse_unknown("fix key", item.keys() - _FIX_KEYS, path)
    if item["pattern"] not in FIX_PATTERNS:
        raise RuleError(path, f"unknown fix pattern {item['pattern']!r}; `phalanx rules fixes` lists them")
    return FixSpec(
        pattern=item["pattern"],
        title=item["title"],
        do=item["do"],
        why=item["why"],
        confirm=item.get("confirm", ""),
        safety=Safety(item.get("safety", "display")),
        when=_checked(item["when"]) if "when" in item else None,
        only=item.get("only", False),
        given=item.get("given", ""),
        shell=item.get("shell", ""),
    )


def _split_body(body: str, path: Path, needed: Sequence[str]) -> tuple[str, str, dict[str, str]]:
    head = re.match(r"\s*# ([^\n]+)\n(.*?)(?=^## |\Z)", body, re.DOTALL | re.MULTILINE)
    if head is None or not head[2].strip():
        raise RuleError(path, "needs a `# Title` and under it one paragraph, the message, before the first ## section")
    parts = re.split(r"^## (.+)\n", body[head.end() :], flags=re.MULTILINE)
    sections = {name.strip(): text.strip("\n") for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    _refuse_unknown("section (fixes stand in the head)", sections.keys() - {*SECTIONS, "Confirm"}, path)
    missing = [name for name in needed if name not in sections]
    if missing:
        raise RuleError(path, f"lacks the section ## {missing[0]}")
    return head[1].strip(), " ".join(head[2].split()), sections


_CASE = re.compile(r"^### (fires|silent): *(.+)$", re.MULTILINE)
_FENCE = re.compile(r"^~~~log *(\S*)\n(.*?)^~~~$", re.MULTILINE | re.DOTALL)


def _cases(section: str, path: Path) -> tuple[Case, ...]:
    parts = _CASE.split(section)
    cases = []
    for kind, name, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        files = tuple((found[1] or "job.log", found[2]) for found in _FENCE.finditer(text))
        if not files:
            raise RuleError(path, f"case {name.strip()!r} has no ~~~log … ~~~ block")
        rest = _FENCE.sub("", text)
        quoted = " ".join(line[1:].strip() for line in rest.splitlines() if line.startswith(">"))
        if re.search(r"^expect:", rest, re.MULTILINE):
            raise RuleError(path, f"case {name.strip()!r} says `expect:`, which nobody reads; write `expects:`")
        expects = re.search(r"^expects: *(.+)$", rest, re.MULTILINE)
        headline = re.search(r"^headline: *(.+)$", rest, re.MULTILINE)
        pairs = [pair.partition("=") for pair in expects[1].split(";")] if expects else []
        cases.append(
            Case(
                name=name.strip(),
                fires=kind == "fires",
                files=files,
                message=quoted or None,
                expects=tuple((key.strip(), value.strip()) for key, _, value in pairs),
                headline=headline[1].strip() if headline else None,
            )
        )
    return tuple(cases)
