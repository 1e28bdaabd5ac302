"""The report for a terminal: verdict, why, fix; the rest on request. Plain text where it is not a terminal."""

from __future__ import annotations

import io
from pathlib import PurePath

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from phalanx.model import Evidence, Finding, Fix, Report, Role
from phalanx.model.printable import printable_tree
from phalanx.model.ranks import name_ranks
from phalanx.report.wording import best_fixes, certainty, says_the_same, what_headline_leaves_out

_WIDTH_IN_PIPE = 110
_SHOWN_EVIDENCE = 3
_LONGEST_QUOTE = 300
_STYLE = {"confirmed": "bold red", "likely": "bold red", "possible": "bold yellow"}


def print_text(report: Report, *, everything: bool = False, console: Console | None = None) -> None:
    """Print the report; `everything` adds all findings, evidence and fixes."""
    console = console or Console(highlight=False)
    report = printable_tree(report)
    if console.is_terminal:
        _print(report, console, everything)
        return
    plain = Console(file=io.StringIO(), highlight=False, width=_WIDTH_IN_PIPE, no_color=True)
    with plain.capture() as captured:
        _print(report, plain, everything)
    console.file.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


def _print(report: Report, console: Console, everything: bool) -> None:
    for name, one in report.jobs:
        console.print(Text(f"{name}:", style="bold"))
        _print(one, console, everything)
        console.print()
    if report.jobs:
        return
    verdict = report.verdict
    for told in report.restarts:
        console.print(Text(told, style="dim"))
    if verdict is None:
        _print_nothing_wrong(report, console)
        return
    _print_finding(verdict, report, console, everything)
    for finding in report.findings[1:]:
        if not everything and says_the_same(finding, verdict):
            continue
        console.print()
        if everything:
            _print_finding(finding, report, console, everything)
        else:
            console.print(Text.assemble(("also  ", "dim"), _headline(finding)), soft_wrap=False)
            console.print(_indented(_class_of_fault(finding), 6))
    _print_foot(report, console, everything)


def _print_nothing_wrong(report: Report, console: Console) -> None:
    files = f"{len(report.read)} file{'s' if len(report.read) != 1 else ''}"
    if report.scope:
        is_whole = ("Nothing wrong found", "bold green") if report.is_complete else ("Not verified", "bold yellow")
        console.print(Text.assemble(is_whole, f" in {report.scope}."))
    elif not report.read:
        console.print(Text("Nothing to read: no text log among what was given.", style="bold yellow"))
    elif len(report.without_output) == len(report.read):
        console.print(Text(f"Nothing to diagnose: no output of a program in {files}.", style="bold yellow"))
    else:
        console.print(Text.assemble(("Nothing wrong found", "bold green"), f" in {files}{_world_words(report)}."))
    _print_unchecked(report, console)


def _print_finding(finding: Finding, report: Report, console: Console, everything: bool) -> None:
    console.print(_headline(finding))
    if finding.place is not None and finding.place.text:
        place = f"{PurePath(finding.place.file).name}:{finding.place.line}"
        console.print(_indented(Text.assemble((f"{place} | ", "cyan"), finding.place.text), 4))
    console.print(_indented(_class_of_fault(finding), 2))
    if rest := what_headline_leaves_out(finding):
        console.print(_indented(Text(rest), 2))
    console.print()
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("who", _who(finding, report))
    quoted = [item for item in finding.evidence if everything or item.role is not Role.CASCADE]
    for number, item in enumerate(quoted if everything else quoted[:_SHOWN_EVIDENCE]):
        table.add_row("why" if number == 0 else "", _evidence_line(item))
    kind = ("Distributed: " if finding.distributed_specific else "Ordinary: ") + finding.distributed_why
    table.add_row("kind", Text(kind))
    fixes = finding.fixes if everything else best_fixes(finding)
    for number, fix in enumerate(fixes, 1):
        table.add_row("", "")
        table.add_row(f"fix {number}" if len(fixes) > 1 else "fix", _fix_text(fix, finding, everything))
    console.print(table)


def _headline(finding: Finding) -> Text:
    mark = "✗ " if finding.confidence.value != "possible" else "? "
    return Text(mark + finding.first_line, style=_STYLE[finding.confidence.value])


def _class_of_fault(finding: Finding) -> Text:
    """Small, for whoever looks it up: the class, the rule's code, the symptom, and how sure who and why are."""
    code = f"{finding.rule}, " if finding.rule else ""
    return Text(f"{finding.title}  [{code}{finding.symptom}, {certainty(finding)}]", style="dim")


def _who(finding: Finding, report: Report) -> Text:
    hosts = {rank.number: rank.host for rank in report.world.ranks}
    text = Text()
    if finding.culprit_ranks:
        text.append(name_ranks(finding.culprit_ranks), style="bold red")
        named = sorted({host for rank in finding.culprit_ranks if (host := hosts.get(rank))})
        text.append(f" (on {', '.join(named[:4])})" if named else "")
        if finding.victim_ranks:
            text.append(f"; {name_ranks(finding.victim_ranks)} suffered from it")
    elif finding.culprit_hosts:
        text.append(", ".join(finding.culprit_hosts), style="bold red")
        text.append(f"; {', '.join(finding.victim_hosts)} would suffer from it" if finding.victim_hosts else "")
    elif len(finding.affected_ranks) > 1:
        text.append(f"no rank stands out: {name_ranks(finding.affected_ranks)} alike")
    elif finding.affected_ranks:
        text.append(
            f"not known; it shows on {name_ranks(finding.affected_ranks)}"
            if _needs_a_rank(finding)
            else f"no rank stands out; it shows on {name_ranks(finding.affected_ranks)}"
        )
    else:
        text.append("no rank stands out")
    return text


def _needs_a_rank(finding: Finding) -> bool:
    """Somebody is missing or failed, and the evidence does not tell who."""
    return finding.distributed_specific and finding.symptom.endswith(("hang", "hang-timeout", "communication-error"))


def _evidence_line(item: Evidence) -> Text:
    who = f"rank {item.rank} " if item.rank is not None else ""
    who += f"(and {name_ranks(item.alike)} alike) " if item.alike else ""
    role = "" if item.role is Role.ROOT else f" ({item.role.value})"
    parts = item.file.split("/")
    file = "/".join(["…", *parts[-3:]]) if len(parts) > 3 else item.file  # run ids make launchers' paths long
    place = f"{file}:{item.line}" if item.line else file
    return Text.assemble((f"{who}{place}{role}: ", "cyan"), item.text[:_LONGEST_QUOTE])


def _fix_text(fix: Fix, finding: Finding, everything: bool) -> Text:
    share = f"; cured {fix.study_share:.0%} of this symptom in the study" if fix.study_share and everything else ""
    text = Text.assemble((fix.title, "bold green"), (f"  [{fix.pattern}{share}]", "dim"), f"\n{fix.do}")
    if fix.why:
        text.append(f"\n{fix.why}", style="dim")
    if fix.where is not None and finding.place is None:
        text.append(f"\nwhere: {fix.where.file}:{fix.where.line}", style="cyan")
    if fix.confirm:
        text.append(f"\nconfirm: {fix.confirm}", style="dim")
    return text


def _indented(text: Text, by: int) -> Padding:
    return Padding(text, (0, 0, 0, by))


def _world_words(report: Report) -> str:
    size = f" of a job of {report.world.size} ranks" if report.world.size else ""
    return size + (f" ({report.world.framework})" if report.world.framework else "")


def _print_foot(report: Report, console: Console, everything: bool) -> None:
    verdict = report.verdict
    console.print()
    _print_unchecked(report, console)
    hints = []
    if verdict is not None and verdict.rule:
        hints.append(f"phalanx rules explain {verdict.rule}")
    if not everything:
        hints.append("--all for everything")
        hints.append("--format html -o verdict.html for a page to share")
    console.print(Text("more: " + " · ".join(hints), style="dim"))


def _print_unchecked(report: Report, console: Console) -> None:
    for item in report.not_checked[:8]:
        console.print(Text(f"not checked: {item.what}; needs {item.needs}", style="dim"))
    if len(report.not_checked) > 8:
        console.print(
            Text(f"not checked: and {len(report.not_checked) - 8} more (--format json lists them)", style="dim")
        )
