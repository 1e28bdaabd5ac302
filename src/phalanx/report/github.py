"""The report as workflow commands of GitHub Actions: each finding becomes an annotation at its line."""

from __future__ import annotations

from phalanx.model import Finding, Report


def render_github(report: Report) -> str:
    """One line a finding; what was not checked as notices."""
    lines = [_line(finding) for finding in report.findings]
    lines += [f"::notice::{_text(f'not checked: {item.what}; needs {item.needs}')}" for item in report.not_checked]
    return "".join(line + "\n" for line in lines)


def _line(finding: Finding) -> str:
    place = next((fix.where for fix in finding.fixes if fix.where is not None), None)
    file, line = (place.file, place.line) if place else ("", 0)
    if not file and finding.evidence:
        file, line = finding.evidence[0].file, finding.evidence[0].line
    level = "warning" if finding.confidence.value == "possible" else "error"
    fields = [f"file={_value(file)}"] if file else []
    fields += [f"line={line}"] if line else []
    fields.append(f"title={_value(finding.rule or finding.symptom)}")
    fix = f" Fix: {finding.fixes[0].do}" if finding.fixes else ""
    return f"::{level} {','.join(fields)}::{_text(f'{finding.title}. {finding.summary}{fix}')}"


def _text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
