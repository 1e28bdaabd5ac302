"""The report as SARIF 2.1.0, which code hosts and editors show beside the code."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from phalanx import __version__
from phalanx.knowledge import load_rules
from phalanx.knowledge.rule import Rule
from phalanx.model import Evidence, Finding, Report
from phalanx.model.template import fill_without_job
from phalanx.report.wording import what_headline_leaves_out

_LEVEL = {"confirmed": "error", "likely": "error", "possible": "warning"}


def render_sarif(report: Report) -> dict[str, Any]:
    """One run; a result a finding. The user's own line comes first among the locations, then the log lines."""
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "phalanx",
                        "version": __version__,
                        "rules": _rules(report),
                    }
                },
                "results": [_result(finding) for finding in report.findings],
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {"level": "note", "message": {"text": f"not checked: {item.what}; needs {item.needs}"}}
                            for item in report.not_checked
                        ],
                    }
                ],
            }
        ],
    }


def _rules(report: Report) -> list[dict[str, Any]]:
    """What the codes of the results mean; of the rules for scripts, whose findings hold all texts, from these."""
    known = {rule.code: rule for rule in load_rules()}
    described: dict[str, dict[str, Any]] = {}
    for finding in report.findings:
        rule = known.get(finding.rule or "")
        help_text = _help(rule) if rule else " ".join(fix.do for fix in finding.shown_fixes[:1])
        described.setdefault(
            finding.rule or "",
            {
                "id": finding.rule,
                "name": "".join(part.capitalize() for part in finding.cause.split("-")),
                "shortDescription": {"text": rule.title if rule else finding.cause.replace("-", " ").capitalize()},
                "fullDescription": {"text": rule.sections["Meaning"] if rule else finding.summary},
                "help": {"text": help_text},
                "properties": {"symptom": rule.symptom if rule else finding.symptom},
            },
        )
    return [described[code] for code in sorted(described) if code]


def _result(finding: Finding) -> dict[str, Any]:
    place = finding.place or (finding.fixes[0].where if finding.fixes else None)
    places = [(place.file, place.line)] if place is not None else []
    result: dict[str, Any] = {
        "level": _LEVEL[finding.confidence.value],
        "message": {"text": _message(finding)},
        "locations": [_location(file, line) for file, line in places]
        or [_location(item.file, item.line) for item in finding.evidence[:1]],
        "relatedLocations": [_related(number, item) for number, item in enumerate(finding.evidence)],
        "properties": {
            "symptom": finding.symptom,
            "cause": finding.cause,
            "culpritRanks": list(finding.culprit_ranks),
            "victimRanks": list(finding.victim_ranks),
            "distributedSpecific": finding.distributed_specific,
            "fixPatterns": [fix.pattern for fix in finding.shown_fixes],
            "culpritConfidence": finding.culprit_confidence.value if finding.culprit_confidence else None,
            "causeConfidence": (finding.cause_confidence or finding.confidence).value,
        },
    }
    if finding.rule:
        result["ruleId"] = finding.rule
    return result


def _message(finding: Finding) -> str:
    parts = [finding.first_line, what_headline_leaves_out(finding)]
    parts += [f"Fix: {fix.do}" for fix in finding.shown_fixes[:1]]
    return " ".join(part for part in parts if part)


def _location(file: str, line: int) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": max(line, 1)}}}


def _related(number: int, item: Evidence) -> dict[str, Any]:
    who = f"rank {item.rank}: " if item.rank is not None else ""
    return {"id": number, "message": {"text": who + item.text}, **_location(item.file, item.line)}


def _uri(path: str) -> str:
    """A file name as a URI reference: what is not allowed in one is percent-encoded."""
    return quote(path.replace("\\", "/").lstrip("<").rstrip(">"))


def _help(rule: Rule) -> str:
    """Its fixes, the most frequent one first."""
    return fill_without_job("\n".join(f"{fix.title}: {fix.do}" for fix in rule.fixes))
