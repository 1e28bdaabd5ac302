"""How `phalanx faults` shows scores, ablations and runs, and refuses what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from phalanx.zoo import ablate as ablation
from phalanx.zoo import tables, watched
from phalanx.zoo.fault import Fault, FaultError
from phalanx.zoo.score import read_causes


def refuse(problem: object) -> typer.Exit:
    """Say what is wrong; the exit to raise."""
    typer.echo(f"phalanx: {problem}", err=True)
    return typer.Exit(2)


def show_ablation(picked: list[Fault], root: Path, form: str, misses: bool, *, with_cases: bool) -> None:
    """What the removal of each part changes."""
    from phalanx.cli.ablating import ablate  # loads all rules

    try:
        found = ablate(picked, read_causes(root), with_cases=with_cases)
    except FaultError as error:
        raise refuse(error) from error
    if form == "json":
        typer.echo(json.dumps(ablation.as_json(found), indent=2))
        return
    shown = ablation.table(found)
    if form == "markdown":
        typer.echo(shown.markdown())
    else:
        print_table(shown)
    for kind, names in ablation.idle(found).items():
        typer.echo(f"change nothing on any log or case of another rule: {len(names)} of kind {kind}: {' '.join(names)}")
    if misses:
        typer.echo("\n".join(ablation.changed(found)))


def print_table(table: tables.TextTable) -> None:
    """As a table of Rich's, wide enough for a file."""
    shown = Table(title=table.title)
    for number, heading in enumerate(table.headings):
        shown.add_column(heading, justify="right" if number else "left", no_wrap=not number)
    for row in table.rows:
        shown.add_row(*row)
    Console(width=None if Console().is_terminal else 170).print(shown)


def score_runs(found: list[watched.Watched], form: str, write: Path | None) -> None:
    """Tables of jobs that were run under `phalanx run`."""
    if not found:
        raise refuse("there is nothing to score: run faults with `--with phalanx-run` first, and name their --keep")
    if form == "json":
        raise refuse("--runs prints tables only: --format is text or markdown")
    if write is not None:
        try:
            page = watched.fill_page(write.read_text(encoding="utf-8"), found)
        except (ValueError, OSError) as error:
            raise refuse(error) from error
        write.write_text(page, encoding="utf-8")
    if form == "markdown":
        typer.echo("\n\n".join(table.markdown() for table in (watched.summary_table(found), watched.rows_table(found))))
        return
    show_runs(found)


def show_runs(found: list[watched.Watched]) -> None:
    """The same on the screen."""
    for table in (watched.summary_table(found), watched.rows_table(found)):
        if table.rows:
            print_table(table)
