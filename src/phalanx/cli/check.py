"""`phalanx check`: what would stop a job, looked for on every host before it is started."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from phalanx.check.check import examine
from phalanx.check.options import CheckOptions
from phalanx.check.parties import Failure, Party, by_command, by_ssh, start_all, this_machine
from phalanx.model import Report
from phalanx.report import Format, print_text, render

_EXAMPLES = """\
Examples:

    phalanx check

    phalanx check --hosts node0,node1 --env MASTER_ADDR=node0 --env MASTER_PORT=29500

    phalanx check --hosts pod-0,pod-1 --each 'kubectl exec -i {host} --'

Exit codes: 0 nothing wrong, 1 findings, 2 the tool could not do its work."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog=_EXAMPLES)(check)


def check(
    hosts: Annotated[str | None, typer.Option(help="Hosts to examine over SSH: a,b,c.")] = None,
    each: Annotated[
        list[str] | None,
        typer.Option(help="Command that runs what follows it on a host, in place of ssh; {host} stands for its name."),
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", help="A variable that the job will have: NAME=VALUE.")
    ] = None,
    python: Annotated[str | None, typer.Option(help="The interpreter to use on the hosts.")] = None,
    network: Annotated[
        bool, typer.Option("--network/--no-network", help="Probe the network between the hosts.")
    ] = True,
    form: Annotated[Format, typer.Option("--format", "-f", help="How to write the report.")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the report to this file.")] = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Show all findings, evidence and fixes.")] = False,
) -> None:
    """Look for what would stop a job, on this machine or on all of its hosts, before it is started."""
    variables = dict(item.split("=", 1) for item in env or [])
    parties, failures = _parties(hosts, each or [], python)
    try:
        report = examine(parties, CheckOptions(environment=variables, network=network), failures)
    finally:
        for party in parties:
            party.close()
    _write(report, form, output, everything)
    raise typer.Exit(1 if report.findings else 0)


def _parties(hosts: str | None, each: list[str], python: str | None) -> tuple[list[Party], list[Failure]]:
    names = [name.strip() for name in hosts.split(",") if name.strip()] if hosts else []
    if each:
        names = names or [""] * len(each)
        templates = each * len(names) if len(each) == 1 else each
        return start_all(
            [partial(by_command, name, template, python, 10.0) for name, template in zip(names, templates, strict=True)]
        )
    if names:
        return start_all([partial(by_ssh, name, python, 10.0) for name in names])
    return [this_machine()], []


def _write(report: Report, form: Format, output: Path | None, everything: bool) -> None:
    if form is Format.TEXT:
        print_text(report, everything=everything, console=Console(highlight=False))
        return
    document = render(report, form)
    if output is None:
        sys.stdout.write(document)
    else:
        output.write_text(document, encoding="utf-8")
