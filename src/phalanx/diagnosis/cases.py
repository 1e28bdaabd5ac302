"""Runs the test cases that rules carry, each against all the other rules, and says what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phalanx.diagnosis import diagnose_inputs, fired_rules
from phalanx.knowledge import Rule
from phalanx.knowledge.rule import Case, Claims
from phalanx.model import Finding
from phalanx.sources import from_text


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one case of one rule."""

    code: str
    case: str
    text: str


def check_rule(rule: Rule, rules: Sequence[Rule]) -> list[Problem]:
    """Every case of a rule, run with all the rules loaded."""
    return [Problem(rule.code, case.name, text) for case in rule.cases for text in _check_case(rule, case, rules)]


def message_of(rule: Rule, case: Case, rules: Sequence[Rule]) -> str | None:
    """What the rule prints for a case; None if it does not win the verdict."""
    report = diagnose_inputs([from_text(name, text) for name, text in case.files], rules)
    return report.verdict.summary if report.verdict is not None and report.verdict.rule == rule.code else None


def _check_case(rule: Rule, case: Case, rules: Sequence[Rule]) -> list[str]:
    inputs = [from_text(name, text) for name, text in case.files]
    fired = fired_rules(inputs, rules)
    if not case.fires:
        return ["fires, but must stay silent"] if rule.code in fired else []
    if rule.code not in fired:
        return ["does not fire"]
    verdict = diagnose_inputs(inputs, rules).verdict
    if verdict is None or verdict.rule != rule.code:
        return [f"fires, but the verdict is {verdict.rule if verdict else None}"]
    problems = []
    if case.message is None:
        problems.append("has no `> message`; add the exact one, or run with --write-messages")
    elif case.message != verdict.summary:
        problems.append(f"message differs\n  expected: {case.message}\n  printed:  {verdict.summary}")
    if case.headline is not None and case.headline != verdict.headline:
        problems.append(f"headline differs\n  expected: {case.headline}\n  printed:  {verdict.headline}")
    problems += _check_expectations(case, verdict)
    problems += _check_cross_talk(rule, fired, rules)
    return problems


def _check_expectations(case: Case, verdict: Finding) -> list[str]:
    actual = {
        "culprits": ",".join(map(str, verdict.culprit_ranks)),
        "victims": ",".join(map(str, verdict.victim_ranks)),
        "symptom": verdict.symptom,
        "confidence": verdict.confidence.value,
        "distributed": str(verdict.distributed_specific).lower(),
        "fix": verdict.shown_fixes[0].pattern if verdict.shown_fixes else "",
    }
    problems = []
    for key, wanted in case.expects:
        if key not in actual:
            problems.append(f"expects the unknown {key}; known: {', '.join(actual)}")
        elif actual[key] != wanted.replace(" ", "").replace("none", ""):
            problems.append(f"expected {key}={wanted}, got {actual[key]}")
    return problems


def _check_cross_talk(rule: Rule, fired: set[str], rules: Sequence[Rule]) -> list[str]:
    """Another rule may fire beside this one only if either declares it; victims' words are always allowed."""
    problems = []
    for other in rules:
        if other.code == rule.code or other.code not in fired or other.claims is Claims.VICTIM:
            continue
        if other.code not in rule.overlaps and rule.code not in other.overlaps:
            problems.append(f"{other.code} ({other.cause}) also fires; sharpen one of them or declare it in overlaps")
    return problems


def write_messages(rule: Rule, rules: Sequence[Rule]) -> int:
    """Fill in the messages that a rule's firing cases lack; returns how many were written."""
    text = Path(rule.path).read_text(encoding="utf-8")
    written = 0
    for case in rule.cases:
        if not case.fires or case.message is not None:
            continue
        message = message_of(rule, case, rules)
        heading = re.search(rf"^### fires: *{re.escape(case.name)}\s*$", text, re.MULTILINE)
        if message is None or heading is None:
            continue
        following = re.search(r"^### |\Z", text[heading.end() :], re.MULTILINE)
        stop = heading.end() + (following.start() if following else 0)
        block = text[heading.end() : stop].rstrip("\n")
        text = text[: heading.end()] + block + f"\n> {message}\n" + text[stop:]
        written += 1
    if written:
        Path(rule.path).write_text(text, encoding="utf-8")
    return written
