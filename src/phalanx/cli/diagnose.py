"""`phalanx diagnose`: whatever a failed job left behind in, a verdict out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from phalanx.cli.diagnosing import Request
from phalanx.report import Format
from phalanx.sources.patience import WHOLE

_EXAMPLES = """\
Examples:

    phalanx diagnose job.log

    phalanx diagnose logs/ --format html --output verdict.html

    kubectl logs --prefix -l job=train | phalanx diagnose -

    phalanx diagnose --hosts a,b,c /scratch/job/logs

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
    hosts: Annotated[str | None, typer.Option(help="Read the paths on these hosts, over SSH: a,b,user@c.")] = None,
    slurm: Annotated[str | None, typer.Option(help="Read the paths on the nodes of this running Slurm job.")] = None,
    each: Annotated[
        str | None, typer.Option(help="With --hosts: the command that reaches a host, such as 'ssh -F cfg {}'.")
    ] = None,
    python: Annotated[
        str | None, typer.Option("--remote-python", help="An interpreter with phalanx, elsewhere.")
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(min=0, help="Seconds in which files are read whole; then their beginnings and ends. 0: no limit."),
    ] = WHOLE,
    serve: Annotated[bool, typer.Option("--serve", hidden=True)] = False,
) -> None:
    """Say which rank broke the job, with what symptom, why, and what to change.

    Reads what any launcher left behind: one file for all ranks or one file a rank, plain or compressed, exit
    statuses, stacks, or a bug report with pasted logs.
    """
    if serve:
        from phalanx.diagnosis import serve_logs

        raise typer.Exit(serve_logs(paths))
    request = Request(tuple(paths), form, output, everything, time_limit)
    if hosts is None and slurm is None:
        if each is not None:
            raise typer.BadParameter("--each needs --hosts, the names that replace {}")
        raise typer.Exit(request.run())
    raise typer.Exit(_afar(request, hosts, slurm, each, python))


def _afar(request: Request, hosts: str | None, slurm: str | None, each: str | None, python: str | None) -> int:
    """On other hosts, which read their own files; nothing but what they found comes here."""
    from phalanx.attaching import reach
    from phalanx.diagnosis import diagnose_on
    from phalanx.diagnosis.afar import Party

    def say(text: str) -> None:
        sys.stderr.write(f"phalanx: {text}\n")

    command = reach.module_command(python, "phalanx", "diagnose", "--serve", *request.paths)
    try:
        if hosts is not None and slurm is not None:
            raise ValueError("give one of --hosts and --slurm")
        if "-" in request.paths:
            raise ValueError("standard input is here, not on the hosts: give paths")
        if slurm is not None:
            ways = reach.by_slurm(slurm, command)
        else:
            names = reach.names_in(hosts or "")
            ways = reach.by_template(each, names, command) if each is not None else reach.by_ssh(names, command)
        report = diagnose_on([Party(way.name, way.command) for way in ways], say)
    except ValueError as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    return request.conclude(report)
