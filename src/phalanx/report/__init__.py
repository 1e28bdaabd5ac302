"""Writes a report: for the terminal, for machines, for code scanners, and as a page to attach to a ticket."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from phalanx.model import Report

__all__ = ["Format", "print_text", "render"]


class Format(StrEnum):
    """The forms a report can take."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    HTML = "html"
    GITHUB = "github"


# What writes each form is loaded when it is asked for: most of them take longer to load than most logs to read.


def print_text(report: Report, *, everything: bool = False, console: Console | None = None) -> None:
    """Print the report; `everything` adds all findings, evidence and fixes."""
    from phalanx.report.text import print_text as in_words

    in_words(report, everything=everything, console=console)


def render(report: Report, form: Format) -> str:
    """The report as a document; text for a terminal is printed by `print_text` instead."""
    if form is Format.JSON:
        return json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"
    if form is Format.SARIF:
        from phalanx.report.sarif import render_sarif

        return json.dumps(render_sarif(report), indent=2, ensure_ascii=False) + "\n"
    if form is Format.HTML:
        from phalanx.report.html import render_html

        return render_html(report)
    if form is Format.GITHUB:
        from phalanx.report.github import render_github

        return render_github(report)
    raise ValueError(f"{form} is not a document; print it")
