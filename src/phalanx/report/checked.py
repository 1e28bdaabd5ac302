"""The report of a check for a terminal: every finding shortly, each with whom it concerns and what to change."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from phalanx.model import Finding, Report
from phalanx.model.printable import printable_tree
from phalanx.model.ranks import name_ranks
from phalanx.report.wording import what_headline_leaves_out

_WIDTH_IN_PIPE = 110
_SHOWN_UNCHECKED = 6


def print_checked(report: Report, seconds: float, console: Console | None = None) -> None:
    """All findings, best first; a word on what was looked at and what was not."""
    console = console or Console(highlight=False)
    report = printable_tree(report)
    if console.is_terminal:
        _print(report, seconds, console)
        return
    plain = Console(file=io.StringIO(), highlight=False, width=_WIDTH_IN_PIPE, no_color=True)
    with plain.capture() as captured:
        _print(report, seconds, plain)
    console.file.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


def _print(report: Report, seconds: float, console: Console) -> None:
    looked = f"{_scope(report)}, {seconds:.1f} s"
    if not report.findings and report.is_complete and report.read:
        console.print(Text.assemble(("Nothing wrong found", "bold green"), f" on {looked}."))
    elif not report.findings:
        said = ("The check is incomplete", "bold yellow")
        console.print(Text.assemble(said, f": not everything could be looked at on {looked}."))
    if not report.findings and report.scope:
        console.print(Text(f"checked: {report.scope}", style="dim"))
    for number, finding in enumerate(report.findings):
        if number:
            console.print()
        if finding.severity == "warning" and (not number or report.findings[number - 1].severity != "warning"):
            console.print(Text("It may work, but slowly or by luck:", style="yellow"))
        _print_finding(finding, console)
    console.print() if report.findings or report.not_checked else None
    for item in sorted(report.not_checked, key=lambda item: not item.essential)[:_SHOWN_UNCHECKED]:
        console.print(Text(f"not checked: {item.what}; needs {item.needs}", style="dim"))
    if len(report.not_checked) > _SHOWN_UNCHECKED:
        more = len(report.not_checked) - _SHOWN_UNCHECKED
        console.print(Text(f"not checked: and {more} more (--format json lists them)", style="dim"))
    if report.findings:
        wrong = sum(finding.severity == "error" for finding in report.findings)
        counted = [_counted(wrong, "finding"), _counted(len(report.findings) - wrong, "warning")]
        if report.scope:
            console.print(Text(f"checked: {report.scope}", style="dim"))
        rule = next((finding.rule for finding in report.findings if finding.rule), None)
        hint = f"more: phalanx rules explain {rule} · --all · --fix-script" if rule else "more: --all"
        console.print(Text(f"{', '.join(filter(None, counted))}; {looked}. {hint}", style="dim"))


def _print_finding(finding: Finding, console: Console) -> None:
    mark = "! " if finding.severity == "warning" else "? " if finding.confidence.value == "possible" else "✗ "
    style = "bold red" if mark == "✗ " else "bold yellow"
    code = f"{finding.rule}, " if finding.rule else ""
    console.print(Text(mark + finding.first_line, style=style))
    tail = f"  {finding.title}  [{code}{finding.symptom}, {finding.confidence.value}]"
    console.print(Text(tail, style="dim"))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    if rest := what_headline_leaves_out(finding):
        table.add_row("  what", Text(rest))
    if finding.culprit_ranks or finding.culprit_hosts:
        table.add_row("  who", Text(_who(finding)))
    for number, fix in enumerate(finding.shown_fixes[:2]):
        table.add_row("  fix" if number == 0 else "  or", Text(f"{fix.title}: {fix.do}"))
    console.print(table)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}" if count else ""


def _who(finding: Finding) -> str:
    hosts = ", ".join(finding.culprit_hosts)
    if not finding.culprit_ranks:
        return hosts
    return name_ranks(finding.culprit_ranks) + (f" on {hosts}" if hosts else "")


def _scope(report: Report) -> str:
    hosts, ranks = len(report.world.hosts), len(report.world.ranks)
    if not hosts:
        return "no host could be examined"
    place = "this machine" if hosts == 1 and ranks < 2 else f"{hosts} host{'s' if hosts != 1 else ''}"
    return place + (f", {ranks} ranks" if ranks > 1 else "")
