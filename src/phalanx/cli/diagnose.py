"""`phalanx diagnose`: whatever a failed job left behind in, a verdict out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from phalanx.diagnose import diagnose_paths
from phalanx.model import Report
from phalanx.report import Format, print_text, render

if TYPE_CHECKING:
    from rich.progress import Progress

_EXAMPLES = """\
Examples:

    phalanx diagnose job.log

    phalanx diagnose logs/ --format html --output verdict.html

    kubectl logs --prefix -l job=train | phalanx diagnose -

Exit codes: 0 nothing wrong, 1 findings, 2 the tool could not do its work."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog=_EXAMPLES)(diagnose)


def diagnose(
    paths: Annotated[
        list[str], typer.Argument(help="Log files, folders of them, or - for standard input.", show_default=False)
    ],
    form: Annotated[Format, typer.Option("--format", "-f", help="How to write the report.")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the report to this file.")] = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Show all findings, evidence and fixes.")] = False,
) -> None:
    """Say which rank broke the job, with what symptom, why, and what to change.

    Reads what any launcher left behind: one file for all ranks or one file a rank, plain or compressed, exit
    statuses, stacks, or a bug report with pasted logs.
    """
    try:
        report = _with_progress(paths)
    except FileNotFoundError as error:
        typer.echo(f"phalanx: {error}", err=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        typer.echo("phalanx: interrupted", err=True)
        raise typer.Exit(130) from error
    try:
        _write(report, form, output, everything)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        typer.echo(f"phalanx: cannot write {output}: {error.strerror}", err=True)
        raise typer.Exit(2) from error
    raise typer.Exit(_status(report))


def _with_progress(paths: list[str]) -> Report:
    console = Console(stderr=True)
    if not console.is_terminal:
        return diagnose_paths(paths)
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=_total_bytes(paths))
        return diagnose_paths(paths, _advance(bar, task))


def _advance(bar: Progress, task: object) -> Callable[[int], None]:
    return lambda count: bar.advance(task, count)  # type: ignore[arg-type]


def _total_bytes(paths: list[str]) -> float | None:
    """The size of what is to be read; None where it cannot be known beforehand."""
    total = 0
    for given in paths:
        path = Path(given)
        if given == "-" or not path.exists():
            return None
        files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
        total += sum(one.stat().st_size for one in files)
    return total


def _write(report: Report, form: Format, output: Path | None, everything: bool) -> None:
    if form is Format.TEXT:
        if output is None:
            print_text(report, everything=everything)
            return
        with output.open("w", encoding="utf-8") as file:
            print_text(report, everything=everything, console=Console(file=file, width=110))
        return
    document = render(report, form)
    if output is None:
        sys.stdout.write(document)
    else:
        output.write_text(document, encoding="utf-8")
        typer.echo(f"wrote {output}", err=True)


def _status(report: Report) -> int:
    if report.verdict is not None:
        return 1
    return 0 if report.read else 2
