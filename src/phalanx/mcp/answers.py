"""A report cut to what an assistant can read: a bounded document, with what was left out counted."""

from __future__ import annotations

from typing import Any

from phalanx.api.report import Report

MOST_FINDINGS = 5
_MOST_EVIDENCE = 6
_MOST_FIXES = 3
_MOST_RANKS = 64
_MOST_TEXT = 600
_WANTED = (
    "headline",
    "detail",
    "symptom",
    "rule",
    "severity",
    "confidence",
    "culprit_confidence",
    "cause_confidence",
    "culprit_ranks",
    "culprit_hosts",
    "victim_ranks",
    "because",
    "place",
)


def answer_of(report: Report) -> dict[str, Any]:
    """The verdict first; lists and texts are cut, and `left_out` says how much of them."""
    document = report.document or report.to_json()
    findings = document.get("findings") or []
    world = document.get("world") or {}
    return {
        "ok": report.ok,
        "said": _short(report.said or (report.verdict.first_line if report.verdict else "Nothing wrong was found.")),
        "world": {"size": world.get("size"), "framework": world.get("framework"), "launcher": world.get("launcher")},
        "findings": [_finding(item) for item in findings[:MOST_FINDINGS]],
        "not_checked": [_short(f"{item['what']}: {item['needs']}") for item in document.get("not_checked", [])[:8]],
        "read": [_short(path) for path in document.get("read", [])[:8]],
        "left_out": {
            "findings": max(0, len(findings) - MOST_FINDINGS),
            "files": max(0, len(document.get("read", [])) - 8),
        },
    }


def _finding(item: dict[str, Any]) -> dict[str, Any]:
    found = {name: _cut(item.get(name)) for name in _WANTED if item.get(name) not in (None, "", [])}
    fixes = [fix for fix in item.get("fixes", []) if fix.get("basis") != "study"][:_MOST_FIXES]
    found["fixes"] = [
        {name: _cut(fix.get(name)) for name in ("title", "do", "shell", "where") if fix.get(name)} for fix in fixes
    ]
    evidence = item.get("evidence", [])
    found["evidence"] = [
        {
            name: _cut(piece.get(name))
            for name in ("rank", "host", "file", "line", "text")
            if piece.get(name) is not None
        }
        for piece in evidence[:_MOST_EVIDENCE]
    ]
    if len(evidence) > _MOST_EVIDENCE:
        found["evidence_left_out"] = len(evidence) - _MOST_EVIDENCE
    return found


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, list):
        return value[:_MOST_RANKS]
    return value


def _short(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
