"""`phalanx study label`: a local page on which two raters label issues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phalanx.cli.study.ending import told_errors

_EPILOG = """\
Examples:

    phalanx study label collection/ --into labels.sqlite

    phalanx study label --into labels.sqlite --export labels.csv"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=_EPILOG)(label)


def label(
    issues: Annotated[
        Path | None,
        typer.Argument(help="Issues to add: a collection, or a .csv, .jsonl or .parquet file.", show_default=False),
    ] = None,
    into: Annotated[Path, typer.Option(help="The labelling's file; one that exists is continued.")] = Path(
        "labels.sqlite"
    ),
    port: Annotated[int, typer.Option(help="On 127.0.0.1; 0 takes any.")] = 0,
    most: Annotated[int | None, typer.Option(help="Add at most so many issues, spread over the whole.")] = None,
    export: Annotated[Path | None, typer.Option(help="Write the labels that stand as CSV and stop.")] = None,
) -> None:
    """Label issues as in the study: two raters apart from each other, then adjudication, agreement computed.

    Each rater opens an address of their own. What is saved is on the disk: the program may be ended at any time.
    """
    from phalanx.study.classify.labelled import read_table
    from phalanx.study.label.server import LabelServer
    from phalanx.study.label.store import FINAL, Labels

    with told_errors():
        labels = Labels(into)
        if issues is not None:
            rows = [row for row in read_table(issues) if not row.get("duplicate_of")]
            step = max(len(rows) // most, 1) if most else 1
            typer.echo(f"{labels.add_issues(rows[::step][:most])} issues added")
        for name, one in labels.agreement().items():
            typer.echo(
                f"agreement on {name}: kappa {one.kappa:.2f} ({one.low:.2f}–{one.high:.2f}) over {one.pairs} issues"
            )
        if export is not None:
            try:
                export.write_text(labels.export(), encoding="utf-8")
            except OSError as error:
                typer.echo(f"phalanx: {export}: cannot be written ({error.strerror})", err=True)
                raise typer.Exit(2) from error
            typer.echo(f"wrote {len(labels.results())} labelled issues to {export}")
            return
        server = LabelServer(labels, port)
    for role, address in server.addresses.items():
        typer.echo(f"{'adjudication' if role == FINAL else f'rater {role}'}: {address}")
    typer.echo("Ctrl-C ends it; everything saved is kept.", err=True)
    try:
        server.server.serve_forever()
    except KeyboardInterrupt:
        server.server.server_close()
        labels.close()
