"""`phalanx diagnose`: whatever a failed job left behind in, a verdict out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phalanx.cli.diagnosing import Request
from phalanx.report import Format

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
    raise typer.Exit(Request(tuple(paths), form, output, everything).run())
