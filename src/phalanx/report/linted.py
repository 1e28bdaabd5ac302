"""The report of a script's analysis for a terminal: one block a finding, as compilers print them. Needs no library."""

from __future__ import annotations

import textwrap
from typing import TextIO

from phalanx.model import Evidence, Finding, Report
from phalanx.model.printable import printable_tree

_WIDTH = 110


def print_linted(
    report: Report, seconds: float, amount: tuple[int, int], out: TextIO, *, everything: bool = False
) -> None:
    """All findings in the order of files and lines, and a summary."""
    report = printable_tree(report)  # names of files and lines of code are somebody else's
    paint = _Paint(out.isatty())
    shown_why: set[str | None] = set()
    for finding in report.findings:
        out.write(_block(finding, paint, everything or finding.rule not in shown_why) + "\n")
        shown_why.add(finding.rule)
    for item in report.not_checked[: None if everything else 8]:
        out.write(paint.dim(f"not checked: {item.what}; needs {item.needs}") + "\n")
    more = len(report.not_checked) - 8
    if more > 0 and not everything:
        out.write(paint.dim(f"not checked: and {more} more (--all lists them)") + "\n")
    files = f"{_count(amount[0], 'file')}, {_count(amount[1], 'line')} read"
    count = len(report.findings)
    if not count:
        found = f"{files}: {paint.good('no findings')}" if report.read else "Nothing was read"
        out.write(f"{found} ({seconds:.1f} s).\n")
        return
    hint = f"more: phalanx rules explain {report.findings[0].rule} · # phalanx: ignore[{report.findings[0].rule}]"
    if any(fix.safety.value == "safe" for finding in report.findings for fix in finding.fixes):
        hint += " · --diff, --fix"
    out.write(paint.dim(f"{files}: {_count(count, 'finding')} ({seconds:.1f} s). {hint}") + "\n")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def _block(finding: Finding, paint: _Paint, with_why: bool) -> str:
    root = finding.evidence[0]
    head = f"{paint.place(f'{root.file}:{root.line}')}: {paint.bad(finding.rule or '')} {finding.title}"
    tail = paint.dim(f"  [{finding.symptom}, {finding.cause}, {finding.confidence.value}]")
    rows = [head + tail, *_code(root, paint)]
    rows += [paint.dim(f"     see {item.file}:{item.line}: {item.text}") for item in finding.evidence[1:]]
    if with_why:
        rows += _wrapped("why: ", finding.summary)
    for fix in finding.fixes:
        rows += _wrapped("fix: ", fix.do)
    return "\n".join(rows) + "\n"


def _code(root: Evidence, paint: _Paint) -> list[str]:
    return [
        f"{paint.bad('>') if number == root.line else ' '} {number:>5} | {text.rstrip()}"
        for number, text in root.context
        if number == root.line or text.strip()
    ]


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  " + label, subsequent_indent="  " + " " * len(label))


class _Paint:
    """Colours, where there is a terminal."""

    def __init__(self, is_terminal: bool) -> None:
        self._is_terminal = is_terminal

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._is_terminal else text

    def bad(self, text: str) -> str:
        return self._wrap("1;31", text)

    def good(self, text: str) -> str:
        return self._wrap("1;32", text)

    def place(self, text: str) -> str:
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        return self._wrap("2", text)
