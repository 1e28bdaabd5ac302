"""`phalanx study reproduce`: the study's tables, plots and figures from the authors' files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable

from phalanx.cli.study.ending import told_errors

_EPILOG = """\
The files are the replication package TOSEM23-DistributedTraining of gudiandian on GitHub (Apache-2.0); docs/study.md says how they are named.

Example: phalanx study reproduce replication/ --output study/"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=_EPILOG)(reproduce)


def reproduce(
    directory: Annotated[Path, typer.Argument(help="The folder with the authors' files.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write.")] = Path("study"),
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw the plots (needs matplotlib).")] = True,
) -> None:
    """Reproduce the study: tables (Markdown, CSV, Parquet), plots (SVG, PNG), one HTML page, the figures file.

    Exit code 1 if the figures differ from those that the product ships.
    """
    from phalanx.study.reproduce import reproduce as write_all
    from phalanx.study.reproduce import summarise

    with told_errors():
        written = write_all(directory, output, plots)
    console = Console()
    console.print(summarise(written.study))
    rounds = (str(one.number) for one in written.study.rounds)
    # without frames it fits into 80 columns
    table = RichTable("question", "reading", *rounds, "all", "95 %", box=None, padding=(0, 2, 0, 0))
    for column in table.columns:
        column.no_wrap = True
    rows: dict[tuple[str, str], list[str]] = {}
    for one in written.study.agreements:
        cells = rows.setdefault((one.question, one.reading), [])
        cells.append(f"{one.agreement.kappa:.2f}")
        if one.round is None:
            cells.append(f"{one.agreement.low:.2f}–{one.agreement.high:.2f}")
    for key, cells in rows.items():
        table.add_row(*key, *cells)
    console.print("The raters' agreement, Cohen's kappa by round:")
    console.print(table)
    typer.echo(f"wrote {written.files} files to {written.folder}; open {written.folder / 'study.html'}", err=True)
    if not written.same_figures:
        typer.echo(
            "phalanx: the figures differ from the shipped ones; `python -m phalanx.study DIR` shows where", err=True
        )
        raise typer.Exit(1)
    typer.echo("the figures are those that the product ships", err=True)
