"""`phalanx faults consoles`: consoles of simulated GPU jobs, and how well the diagnosis does on them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console as Terminal
from rich.table import Table

from phalanx.diagnosis import diagnose_paths
from phalanx.zoo.consoles import score as scoring
from phalanx.zoo.consoles.cell import HELD_BACK, OPEN, Console, cells, make, sample_of, split_of
from phalanx.zoo.consoles.excerpts import load_excerpts
from phalanx.zoo.consoles.form import all_forms
from phalanx.zoo.consoles.situation import all_situations
from phalanx.zoo.fault import FaultError
from phalanx.zoo.score import read_causes
from phalanx.zoo.tables import TextTable, fill_page

consoles_app = typer.Typer(
    no_args_is_help=True, help="Consoles of simulated GPU jobs: situations printed in many forms."
)
Situations = Annotated[list[str] | None, typer.Option("--situation", help="Only this situation; may be repeated.")]
Forms = Annotated[list[str] | None, typer.Option("--form", help="Only this form; may be repeated.")]
Split = Annotated[str | None, typer.Option(help=f"Only this split: {OPEN} or {HELD_BACK}.")]
SCORE = "phalanx faults consoles score --write"


def _pick(situations: Sequence[str] | None, forms: Sequence[str] | None, split: str | None) -> list[tuple[str, str]]:
    picked = [
        (situation.name, form.name)
        for situation, form in cells()
        if (not situations or situation.name in situations)
        and (not forms or form.name in forms)
        and split in (None, split_of(situation.name, form.name))
    ]
    if not picked:
        typer.echo("phalanx: no console fits; `phalanx faults consoles list` shows situations and forms", err=True)
        raise typer.Exit(2)
    return picked


@consoles_app.command("list")
def list_consoles(situations: Situations = None, forms: Forms = None) -> None:
    """All situations and forms, with what each is."""
    picked = set(_pick(situations, forms, None))
    found = [(one, form) for one, form in cells() if (one.name, form.name) in picked]
    typer.echo("situations")
    for name, line in {one.name: f"{one.symptom or 'healthy':<28} {one.title}" for one, _ in found}.items():
        typer.echo(f"  {name:<32} {line}")
    typer.echo("forms")
    for name, title in {form.name: form.title for _, form in found}.items():
        typer.echo(f"  {name:<32} {title}")
    held = sum(split_of(one.name, form.name) == HELD_BACK for one, form in found)
    typer.echo(f"{len(found)} consoles, {held} of them held back")


@consoles_app.command(epilog="Example: phalanx faults consoles write consoles --situation rank-missing")
def write(
    folder: Annotated[Path, typer.Argument(help="Where to put DIR/<situation>/<form>/logs and truth.json.")],
    situations: Situations = None,
    forms: Forms = None,
    held_back: Annotated[bool, typer.Option("--held-back", help="Write those that are held back, too.")] = False,
    variant: Annotated[int, typer.Option(help="Another job, rank and release for the same cells.")] = 0,
) -> None:
    """Write consoles with their truth beside them."""
    by_name = {(one.name, form.name): (one, form) for one, form in cells()}
    picked = _pick(situations, forms, None if held_back else OPEN)
    for names in picked:
        make(*by_name[names], variant=variant).write(folder / names[0] / names[1])
    typer.echo(f"{len(picked)} consoles in {folder}")


def diagnose(names: tuple[str, str, Mapping[str, frozenset[str]]]) -> scoring.Mark:
    """Make one console, diagnose it, mark it. Takes one argument, so that a pool of processes can map it."""
    situation, form, causes = names
    return _judge(make(all_situations()[situation], all_forms()[form]), causes)


def _judge(console: Console, causes: Mapping[str, frozenset[str]]) -> scoring.Mark:
    with tempfile.TemporaryDirectory(prefix="phalanx-console-") as folder:
        report = diagnose_paths([str(console.write(Path(folder)))]).to_json() if console.files else {}
    return scoring.mark(console.truth, report, causes)


@consoles_app.command(epilog="Example: phalanx faults consoles score --situation rank-missing --misses")
def score(
    situations: Situations = None,
    forms: Forms = None,
    split: Split = None,
    root: Annotated[Path, typer.Option("--zoo", help="The folder with causes.toml.")] = Path("faults"),
    misses: Annotated[bool, typer.Option(help="List what was missed, of the open consoles.")] = False,
    show_matrix: Annotated[bool, typer.Option("--matrix", help="Print the matrix of situations and forms.")] = False,
    write_page: Annotated[
        Path | None, typer.Option("--write", help="Put totals and matrix into this page, between its markers.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Take only every n-th console, spread by name.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="How many processes diagnose at one time.")] = 1,
) -> None:
    """Diagnose consoles and score the verdicts against the truth."""
    causes = read_causes(root)
    picked = _pick(situations, forms, split)
    work = [(situation, form, causes) for situation, form in picked if sample_of(situation, form, every)]
    if jobs > 1:
        with ProcessPoolExecutor(jobs) as pool:
            marks = list(pool.map(diagnose, work, chunksize=8))
    else:
        marks = [diagnose(one) for one in work]
    if not (situations or forms or split):
        marks += [_judge(console, causes) for console in _excerpts(root)]
    tables = [scoring.totals(marks, "Consoles of simulated GPU jobs")]
    if show_matrix or write_page is not None:
        tables.append(scoring.matrix(marks))
    if write_page is not None:
        page = fill_page(write_page.read_text(encoding="utf-8"), SCORE, *tables)
        write_page.write_text(page, encoding="utf-8")
    for table in tables:
        _print(table)
    if misses:
        typer.echo("\n".join(scoring.misses(marks)))


def _excerpts(root: Path) -> list[Console]:
    try:
        return load_excerpts(root)
    except FaultError as error:
        typer.echo(f"phalanx: {error}", err=True)
        raise typer.Exit(2) from error


def _print(table: TextTable) -> None:
    shown = Table(title=table.title)
    for number, heading in enumerate(table.headings):
        shown.add_column(heading, justify="right" if number else "left", no_wrap=not number)
    for row in table.rows:
        shown.add_row(*row)
    Terminal(width=None if Terminal().is_terminal else 190).print(shown)
