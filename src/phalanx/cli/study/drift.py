"""`phalanx study drift`: what is new in a collection, and drafts of rules for it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from phalanx.cli.study.ending import told_errors
from phalanx.diagnosis import fired_rules
from phalanx.knowledge import load_rules
from phalanx.sources import from_text

_EPILOG = "Example: phalanx study drift collection/ --labels classified.parquet --output drift/"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=_EPILOG)(drift)


@cache
def known(line: str) -> str | None:
    """The rule that explains a log line by itself, if any."""
    return min(fired_rules([from_text("job.log", line + "\n")], load_rules()), default=None)


def drift(
    collection: Annotated[
        Path,
        typer.Argument(help="A collection of `phalanx study collect`, or a file with its columns.", show_default=False),
    ],
    labels: Annotated[Path | None, typer.Option(help="The output of `phalanx study classify` for it.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write tables, page and drafts.")] = Path(
        "drift"
    ),
    days: Annotated[int, typer.Option(help="How many days are recent.", min=1)] = 90,
    fewest: Annotated[int, typer.Option(help="A message counts from so many issues on.", min=2)] = 3,
) -> None:
    """What rises, what no rule knows, what a release introduced; with drafts of rules, status preview."""
    from phalanx.study.classify.labelled import read_table
    from phalanx.study.drift.survey import survey
    from phalanx.study.drift.write import write_drift

    with told_errors():
        rows = read_table(collection)
        said = {str(row.get("key")): row for row in read_table(labels)} if labels is not None else {}
        found = survey(rows, said, known, load_rules(), days, fewest)
        write_drift(found, output)
    typer.echo(
        f"{found.posts} issues, {found.recent} since {found.since}; {found.duplicates} repeat another, {found.undated} without a time: not counted"
    )
    if labels is None:
        typer.echo("symptoms were not compared: give --labels from `phalanx study classify`")
    for one in found.rising_symptoms:
        typer.echo(f"rises: {one.name}, {one.recent} seen, {one.expected:.1f} expected")
    for one in found.rising_messages[:10]:
        typer.echo(f"rises: {one.name}, {one.recent} seen, {one.expected:.1f} expected")
    for new in found.introduced[:10]:
        typer.echo(f"since {new.library} {new.release}: {new.name} ({new.seen} issues)")
    typer.echo(
        f"{len(found.unknown)} frequent messages that no rule knows, {len(found.drafts)} drafts in {output / 'rules'}"
    )
    for template, why in found.refused:
        typer.echo(f"  no draft for {template!r}: {why}", err=True)
