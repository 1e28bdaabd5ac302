"""Joins a diagnosis to the rule for scripts that would have found the same fault in the source before the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from phalanx.model import Evidence, Role

if TYPE_CHECKING:
    from phalanx.model import Finding, Place, Report


def with_script_rule(report: Report) -> Report:
    """The report, its verdict with the line and code of `phalanx check`, where the script is at hand and says the same."""
    verdict = report.verdict
    place = _place(verdict) if verdict is not None else None
    if verdict is None or place is None:
        return report
    found = _found(place, verdict.cause)
    if found is None:
        return report
    root = found.evidence[0]
    told = Evidence(None, root.file, root.line, f"phalanx check: {found.rule} {found.title}", Role.SUPPORTS)
    return replace(report, findings=(replace(verdict, evidence=(*verdict.evidence, told)), *report.findings[1:]))


def _place(verdict: Finding) -> Place | None:
    """The user's own line that the verdict names, if its file is on this machine."""
    places = [verdict.place, *(fix.where for fix in verdict.fixes)]
    return next((p for p in places if p is not None and p.file.endswith(".py") and Path(p.file).is_file()), None)


def _found(place: Place, cause: str) -> Finding | None:
    """The script's finding of the same cause, the nearest to the line first."""
    from phalanx.lint import LintError, lint_paths

    try:
        findings = lint_paths([place.file]).report.findings
    except (LintError, OSError):
        return None
    alike = [finding for finding in findings if finding.cause == cause]
    return min(alike, key=lambda finding: abs(finding.evidence[0].line - place.line), default=None)
