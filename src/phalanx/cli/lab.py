"""`phalanx lab`: a network of several hosts on this machine, broken in a chosen way, to rehearse a failure."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from phalanx.lab import Bed, LabError
from phalanx.lab.fault import apply_faults, find_fault, load_faults
from phalanx.lab.rehearsal import run_everywhere
from phalanx.lab.scoring import WAYS, score_fault, summarise
from phalanx.lab.shelf import DEFAULT, names, recall, remember, take_down
from phalanx.lab.ssh import start_ssh

_EXAMPLES = """\
Examples:

    phalanx lab up -n 3 --fault firewall-high-ports     # three hosts, one of them with a firewall

    phalanx lab exec h1 -- ip addr                      # on one of them

    phalanx lab check                                   # what phalanx check says of it

    phalanx lab down

    phalanx lab up -n 3 --ssh                           # then, in the middle of a job: phalanx lab break partition

    phalanx lab exec h0 -- phalanx run -n 3 --on ssh://h0,h1,h2 train.py

    phalanx lab run -n 2 --fault mtu-tunnel -- python train.py     # all in one: up, on every host, down

    phalanx lab faults                                  # what can be broken

    phalanx lab score --way each                        # how phalanx check does on all of them

Exit codes: 0 done, 1 the command failed, 2 the tool could not do its work."""
_Result = TypeVar("_Result")
_FAULT = typer.Option(
    "--fault", "-x", help="Break it: NAME, or NAME:parameter=value,… (phalanx lab faults lists them)."
)
_NAME = typer.Option("--name", help="Which bed, if there are several.")
_COUNT = typer.Option("-n", "--hosts", min=1, max=200, help="How many hosts.")
lab = typer.Typer(
    help="Make a network of several hosts on this machine, break it, and rehearse a failure.",
    no_args_is_help=True,
    epilog=_EXAMPLES,
)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.add_typer(lab, name="lab")


def _attempt(work: Callable[[], _Result]) -> _Result:
    """What cannot be done is said in a sentence."""
    try:
        return work()
    except LabError as error:
        typer.echo(f"phalanx lab: {error}", err=True)
        raise typer.Exit(2) from error


@lab.command()
def up(
    hosts: Annotated[int, _COUNT] = 3,
    fault: Annotated[list[str] | None, _FAULT] = None,
    ssh: Annotated[bool, typer.Option("--ssh", help="With SSH servers, for phalanx run --on ssh://h0,h1.")] = False,
    name: Annotated[str, _NAME] = DEFAULT,
) -> None:
    """Make a bed that stays until `phalanx lab down`."""

    def work() -> None:
        if name in names():
            try:
                recall(name)
            except LabError:
                pass  # it was ended otherwise
            else:
                raise LabError(f"the bed {name} is up already: phalanx lab down, or another --name")
        began = time.monotonic()
        bed = Bed(hosts, stay=True)
        bed.up()
        try:
            apply_faults(bed, fault or [])
            if ssh:
                start_ssh(bed)
            remember(bed, name)
        except BaseException:
            bed.down()
            raise
        took = time.monotonic() - began
        broken = f", broken by {', '.join(bed.applied)}" if bed.applied else ""
        typer.echo(
            f"{len(bed.hosts)} hosts in {took:.2f} s{broken}: {', '.join(f'{one.name} {one.address}' for one in bed.hosts[:4])}{' …' if hosts > 4 else ''}"
        )
        typer.echo(
            "phalanx lab exec h0 -- COMMAND runs on one; phalanx lab check examines them; phalanx lab down ends it"
        )

    _attempt(work)


@lab.command("exec", context_settings={"ignore_unknown_options": True})
def execute(
    host: Annotated[str, typer.Argument(help="Where: h0, h1, …")],
    command: Annotated[list[str], typer.Argument(help="What to run there, after --.")],
    name: Annotated[str, _NAME] = DEFAULT,
) -> None:
    """Run a command on a host, with the variables of the job."""
    prefix = _attempt(lambda: recall(name)[host].prefix)
    os.execvp(prefix[0], [*prefix, *command])


@lab.command()
def shell(
    host: Annotated[str, typer.Argument(help="Where: h0, h1, …")] = "h0", name: Annotated[str, _NAME] = DEFAULT
) -> None:
    """Open a shell on a host."""
    prefix = _attempt(lambda: recall(name)[host].prefix)
    os.execvp(prefix[0], [*prefix, os.environ.get("SHELL", "/bin/sh")])


@lab.command("break")
def break_it(
    fault: Annotated[list[str], typer.Argument(help="NAME, or NAME:parameter=value,…")],
    name: Annotated[str, _NAME] = DEFAULT,
) -> None:
    """Break a bed that is up, in the middle of a job for example."""

    def work() -> None:
        bed = recall(name)
        apply_faults(bed, fault)
        remember(bed, name)

    _attempt(work)
    typer.echo(f"broken by {', '.join(fault)}")


@lab.command("run", context_settings={"ignore_unknown_options": True})
def rehearse(
    command: Annotated[list[str], typer.Argument(help="What to run on every host, after --.")],
    hosts: Annotated[int, _COUNT] = 3,
    fault: Annotated[list[str] | None, _FAULT] = None,
    timeout: Annotated[float, typer.Option(help="End it after so many seconds.")] = 600.0,
) -> None:
    """Make a bed, run a command on every host as a rank of one job, and take the bed down."""

    def work() -> dict[str, int]:
        with Bed(hosts) as bed:
            apply_faults(bed, fault or [])
            return run_everywhere(bed, command, timeout=timeout)

    ended = _attempt(work)
    for host, status in ended.items():
        if status:
            typer.echo(f"phalanx lab: {host} ended with {status}{' (time was up)' if status == 124 else ''}", err=True)
    raise typer.Exit(1 if any(ended.values()) else 0)


@lab.command("faults")
def list_faults(pattern: Annotated[str, typer.Argument(help="Only those with this in their name.")] = "") -> None:
    """List what can be broken, with parameters and what is found."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("fault", "what it breaks", "parameters", "found as"):
        table.add_column(title, overflow="fold")
    for fault in load_faults().values():
        if pattern in fault.name:
            chosen = ", ".join(f"{key}={value}" for key, value in fault.parameters.items())
            table.add_row(fault.name, fault.about, chosen, fault.expected.cause)
    Console(highlight=False, width=None if Console().is_terminal else 140).print(table)


@lab.command()
def check(
    name: Annotated[str, _NAME] = DEFAULT,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Show all findings, evidence and fixes.")] = False,
) -> None:
    """Run `phalanx check` on all hosts of a bed."""
    from phalanx.cli.check import check as check_hosts  # the lab itself needs nothing of it

    bed = _attempt(lambda: recall(name))
    each = [shlex.join(host.prefix) for host in bed]
    check_hosts(
        command=shlex.split(bed.command) or None,
        hosts=",".join(host.name for host in bed),
        each=[*each, *bed.commands.values()],
        python=sys.executable,
        everything=everything,
    )


@lab.command()
def score(
    faults: Annotated[list[str] | None, typer.Argument(help="Which faults; all if none is named.")] = None,
    way: Annotated[list[str] | None, typer.Option(help=f"How: {', '.join(WAYS)}; all if none is named.")] = None,
    hosts: Annotated[int, _COUNT] = 3,
) -> None:
    """Score `phalanx check` on every fault of the lab; of those that are held back only the sums are shown."""

    def work() -> None:
        unknown = [one for one in way or () if one not in WAYS]
        if unknown:
            raise LabError(f"--way {unknown[0]}: give some of {', '.join(WAYS)}")
        chosen = [find_fault(name)[0] for name in faults or load_faults()]
        for one in way or WAYS:
            scores = []
            for fault in chosen:
                found = score_fault(fault, one, hosts)
                if found is None:
                    continue
                scores.append(found)
                if not found.held_back or faults:
                    said = "; ".join(found.said) or "nothing"
                    typer.echo(f"{one:8} {found.verdict:6} {found.seconds:5.1f} s  {found.name:28} {said}")
            typer.echo(f"{one}, in view: {summarise([score for score in scores if not score.held_back])}")
            typer.echo(f"{one}, held back: {summarise([score for score in scores if score.held_back])}")

    _attempt(work)


@lab.command()
def down(name: Annotated[str, _NAME] = DEFAULT) -> None:
    """End a bed and all that runs in it."""
    _attempt(lambda: take_down(name))
    typer.echo(f"the bed {name} is gone")
