"""Writes a report: for the terminal, for machines, for code scanners, and as a page to attach to a ticket."""

from __future__ import annotations

import json
from enum import StrEnum

from phalanx.model import Report
from phalanx.report.sarif import render_sarif
from phalanx.report.text import print_text

__all__ = ["Format", "print_text", "render"]


class Format(StrEnum):
    """The forms a report can take."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    HTML = "html"


def render(report: Report, form: Format) -> str:
    """The report as a document; text for a terminal is printed by `print_text` instead."""
    if form is Format.JSON:
        return json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"
    if form is Format.SARIF:
        return json.dumps(render_sarif(report), indent=2, ensure_ascii=False) + "\n"
    if form is Format.HTML:
        from phalanx.report.html import render_html  # its template engine takes longer to load than most logs to read

        return render_html(report)
    raise ValueError(f"{form} is not a document; print it")
