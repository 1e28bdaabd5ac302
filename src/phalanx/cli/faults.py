"""`phalanx faults`: the fault zoo, and how well the diagnosis does on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from phalanx.diagnose import diagnose_paths
from phalanx.zoo.fault import Fault, FaultError, load_zoo
from phalanx.zoo.runner import run_fault
from phalanx.zoo.score import Mark, as_json, mark, total

faults_app = typer.Typer(no_args_is_help=True, help="The fault zoo: real, runnable faults, and the score on them.")
Root = Annotated[Path, typer.Option("--zoo", help="The folder of the faults.")]
Names = Annotated[list[str] | None, typer.Argument(help="Names of faults; all if none is given.")]
_ZOO = Path("faults")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.add_typer(faults_app, name="faults")


def _pick(root: Path, names: list[str] | None) -> list[Fault]:
    try:
        zoo = load_zoo(root)
    except FaultError as error:
        typer.echo(f"phalanx: {error}", err=True)
        raise typer.Exit(2) from error
    if not zoo:
        typer.echo(
            f"phalanx: no faults below {root}; run it where the repository's folder faults/ is, or give --zoo", err=True
        )
        raise typer.Exit(2)
    unknown = sorted(set(names or ()) - {fault.name for fault in zoo})
    if unknown:
        typer.echo(f"phalanx: there is no fault {unknown[0]}; `phalanx faults list` shows all of them", err=True)
        raise typer.Exit(2)
    return [fault for fault in zoo if not names or fault.name in names]


@faults_app.command("list", epilog="Example: phalanx faults list --zoo faults")
def list_faults(root: Root = _ZOO) -> None:
    """All faults: name, symptom, culprits, title."""
    for fault in _pick(root, None):
        truth = "healthy" if fault.healthy else fault.symptom
        culprits = ",".join(map(str, fault.culprit_ranks)) or "-"
        typer.echo(f"{fault.name:<48} {truth:<42} {culprits:<6} {fault.split:<6} {fault.title}")


@faults_app.command(epilog="Example: phalanx faults run torch-uneven-steps --venv .venv")
def run(
    names: Names = None,
    root: Root = _ZOO,
    venv: Annotated[Path | None, typer.Option(help="The environment whose Python runs the jobs.")] = None,
    cured: Annotated[
        bool, typer.Option(help="Run the mended twin instead, which must pass; its logs are not kept.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Where the logs go: DIR/<name>. Default: into the fault's own folder.")
    ] = None,
) -> None:
    """Run faults for real, each bounded in time, and keep what a user would have of them."""
    failed = 0
    picked = _pick(root, names)
    for number, fault in enumerate(picked, 1):
        out = keep / fault.name if keep is not None else fault.recorded
        if cured and keep is None:
            out = Path(typer.get_app_dir("phalanx")) / "cured" / fault.name
        typer.echo(f"[{number}/{len(picked)}] {fault.name}: at most {fault.run.timeout_s:g} s …", err=True)
        outcome = run_fault(fault, venv.absolute() if venv else None, out, cured=cured)
        bad = (cured or fault.healthy) and not outcome.clean
        failed += bad
        typer.echo(
            f"{fault.name}: {dict(outcome.exit_codes)} after {outcome.seconds:.1f} s{' FAILED' if bad else ''}; logs in {out}"
        )
    raise typer.Exit(1 if failed else 0)


@faults_app.command(epilog="Example: phalanx faults score --split test")
def score(
    names: Names = None,
    root: Root = _ZOO,
    split: Annotated[str | None, typer.Option(help="Only this split: train or test.")] = None,
    form: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
    misses: Annotated[
        bool, typer.Option(help="List what was missed (not for the test split while rules are written).")
    ] = False,
) -> None:
    """Diagnose the recorded logs of the faults and print hits beside false accusations and false alarms."""
    picked = [fault for fault in _pick(root, names) if fault.recorded.is_dir() and split in (None, fault.split)]
    from rich.progress import track

    console = Console(stderr=True)
    marks = [
        mark(fault, diagnose_paths([str(fault.recorded)]))
        for fault in track(
            picked, description="faults", console=console, transient=True, disable=not console.is_terminal
        )
    ]
    if form == "json":
        typer.echo(json.dumps(as_json(marks), indent=2))
        return
    _print_table(marks)
    if misses:
        _print_misses(marks)


def _print_table(marks: Sequence[Mark]) -> None:
    table = Table(title="Verdicts on recorded logs of real faults")
    for heading in (
        "set",
        "faults",
        "healthy",
        "symptom 1st",
        "in 3",
        "culprit exact",
        "fix 1st",
        "in 3",
        "innocent accused",
        "false alarms",
    ):
        table.add_column(heading, justify="left" if heading == "set" else "right")
    groups: list[tuple[str, list[Mark]]] = [("all", list(marks))]
    groups += [
        (f"split {name}", [one for one in marks if one.split == name]) for name in sorted({m.split for m in marks})
    ]
    groups += [(name, [one for one in marks if one.framework == name]) for name in sorted({m.framework for m in marks})]
    for name, group in groups:
        result = total(group)
        shares = (
            result.symptom_first,
            result.symptom_in_three,
            result.culprit_exact,
            result.fix_first,
            result.fix_in_three,
            result.innocent_accused,
        )
        table.add_row(
            name,
            str(result.faults),
            str(result.healthy),
            *(f"{value:.1%}" for value in shares),
            str(result.false_alarms),
        )
    Console(width=None if Console().is_terminal else 130).print(table)


def _print_misses(marks: Sequence[Mark]) -> None:
    for one in marks:
        wrong = []
        if one.false_alarm:
            wrong.append(f"false alarm: {one.got} ({one.rule})")
        elif not one.healthy:
            wrong += [] if one.symptom_first else [f"symptom {one.got} ({one.rule}) instead of {one.wanted}"]
            wrong += [] if one.fix_in_three else ["fix not in three"]
            wrong += [] if one.culprit_exact else ["culprit not exact"]
        if one.innocent_accused:
            wrong.append("INNOCENT ACCUSED")
        if wrong:
            typer.echo(f"{one.name}: {'; '.join(wrong)}")
