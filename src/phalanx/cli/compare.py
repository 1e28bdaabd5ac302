"""`phalanx compare`: two recorded runs of the same job, and where they part."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from phalanx.cli.replay import ReplayFormat
from phalanx.model.printable import printable_tree
from phalanx.replay.compare import Comparison, compare
from phalanx.replay.recordings import ReplayError, open_recording


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("compare")(compare_runs)


def compare_runs(
    one: Annotated[Path, typer.Argument(help="What `phalanx run --record` left.", show_default=False)],
    other: Annotated[Path, typer.Argument(help="The same of another run.", show_default=False)],
    form: Annotated[
        ReplayFormat, typer.Option("--format", "-f", help="json: the outcome alone on standard output.")
    ] = ReplayFormat.TEXT,
) -> None:
    """Say where two runs of a job part first: rank, step, collective, parameter, and by how much.

    Before and after a change of the code, of a version, or of the number of ranks. Exits with 0 if they agree, 1 if they part.
    """
    try:
        found = compare(open_recording(one), open_recording(other))
    except ReplayError as error:
        typer.echo(f"phalanx: {error}", err=True)
        raise typer.Exit(2) from error
    if form is ReplayFormat.JSON:
        sys.stdout.write(json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n")
    else:
        _print(found)
    raise typer.Exit(1 if found.parting else 0)


def _print(found: Comparison) -> None:
    found = printable_tree(found)
    parting = found.parting
    if parting is None:
        typer.echo(
            f"✓ The runs agree  [{found.fidelity}]\n  {found.compared} calls of {len(found.ranks)} ranks compared"
        )
    else:
        typer.echo(f"✗ The runs part at step {parting.step}, rank {parting.rank}  [{parting.what}, {found.fidelity}]")
        typer.echo(f"  {parting.text}")
        if parting.names:
            typer.echo(f"  tensor  {', '.join(parting.names)}")
        if parting.largest is not None and parting.relative is not None:
            typer.echo(
                f"  result  differs by up to {parting.largest:.3g} ({parting.relative:.2g} of the largest value)"
            )
        places = dict.fromkeys(place for place in parting.lines if place)
        if places:
            typer.echo(f"  line    {' against '.join(places)}")
    for note in found.notes:
        typer.echo(f"  note    {note}")
