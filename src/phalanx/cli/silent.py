"""`phalanx faults silent`: training that runs and is wrong, and how well `phalanx verify` finds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from phalanx.cli.fault_tables import print_table, refuse
from phalanx.zoo import environments, silent, verified
from phalanx.zoo.fault import Fault, FaultError
from phalanx.zoo.reading import load_zoo
from phalanx.zoo.score import read_causes
from phalanx.zoo.tables import fill_page

silent_app = typer.Typer(no_args_is_help=True, help="The silent wing: training that runs and is wrong.")
Root = Annotated[Path, typer.Option("--zoo", help="The folder of the wing.")]
_ROOT = Path("faults") / "silent"
_KEPT = Path(".zoo") / "silent"
COMMAND = "phalanx faults silent score --write"


def _load(root: Path, names: list[str] | None, split: str | None) -> list[Fault]:
    try:
        zoo = load_zoo(root)
    except FaultError as error:
        raise refuse(error) from error
    if not zoo:
        raise refuse(f"no faults below {root}; run it where the repository's folder faults/ is, or give --zoo")
    unknown = sorted(set(names or ()) - {fault.name for fault in zoo})
    if unknown:
        raise refuse(f"there is no fault {unknown[0]}; `phalanx faults silent list` shows all of them")
    return [fault for fault in zoo if (not names or fault.name in names) and split in (None, fault.split)]


@silent_app.command("list", epilog="Example: phalanx faults silent list")
def list_faults(root: Root = _ROOT) -> None:
    """The faults of the wing: group, cause, split and title. What the held-back third is about is not shown."""
    for fault in _load(root, None, None):
        hidden = fault.split == silent.HELD_BACK
        told = ("", "held back") if hidden else (fault.cause or "healthy", fault.title)
        typer.echo(f"{fault.name:<42} {fault.group or '':<13} {told[0]:<38} {fault.split:<6} {told[1]}")


@silent_app.command(epilog="Example: phalanx faults silent score --split train --misses")
def score(
    names: Annotated[list[str] | None, typer.Argument(help="Names of jobs; all if none is given.")] = None,
    root: Root = _ROOT,
    split: Annotated[str | None, typer.Option(help="Only this split: train or test.")] = None,
    keep: Annotated[Path, typer.Option(help="Where the reports go: DIR/<name>.json.")] = _KEPT,
    resume: Annotated[bool, typer.Option("--resume", help="Verify only what has no report in --keep.")] = False,
    only_read: Annotated[bool, typer.Option("--kept", help="Verify nothing: score what is in --keep.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="How many at one time.")] = 1,
    plain: Annotated[
        bool, typer.Option("--plain", help="Run each job by its own launcher first, to compare the times.")
    ] = False,
    form: Annotated[str, typer.Option("--format", help="text, json or markdown.")] = "text",
    misses: Annotated[bool, typer.Option(help="List what was missed (not for the test split).")] = False,
    write: Annotated[Path | None, typer.Option(help="Put the tables into this page, between its markers.")] = None,
    environment_folder: Annotated[
        Path, typer.Option("--environments", help="Where the virtual environments of the jobs are, made if need be.")
    ] = environments.FOLDER,
) -> None:
    """Run `phalanx verify` over faults, their cured twins and healthy jobs: found, cause named, false alarms."""
    if form not in ("text", "json", "markdown"):
        raise refuse(f"--format {form}: it is one of text, json, markdown")
    picked = _load(root, names, split)
    work = [(fault, twin) for fault in picked for twin in ((False,) if fault.healthy else (False, True))]
    try:
        if not only_read:
            todo = [(f, twin) for f, twin in work if not resume or verified.read(keep, f.name, twin=twin) is None]
            _verify_all(todo, keep, environment_folder.absolute(), jobs, plain)
        causes = {**read_causes(root.parent), **read_causes(root)}
        marks = [
            silent.silent_mark(fault, result, causes)
            for fault, twin in work
            if (result := verified.read(keep, fault.name, twin=twin)) is not None
        ]
    except FaultError as error:
        raise refuse(error) from error
    if not marks:
        raise refuse(f"there is nothing to score in {keep}; leave --kept out to verify the jobs")
    if write is not None:
        try:
            tables = (silent.table(marks, times=False), silent.jobs_table(_load(root, None, None)))
            write.write_text(fill_page(write.read_text(encoding="utf-8"), COMMAND, *tables), encoding="utf-8")
        except (ValueError, OSError) as error:
            raise refuse(error) from error
    _show(marks, form, misses)


def _show(marks: list[silent.SilentMark], form: str, misses: bool) -> None:
    if form == "json":
        typer.echo(json.dumps(silent.as_json(marks), indent=2))
    elif form == "markdown":
        typer.echo(silent.table(marks, times=True).markdown())
    else:
        print_table(silent.table(marks, times=True))
        if misses:
            typer.echo("\n".join(silent.misses(marks)))


def _verify_all(todo: list[tuple[Fault, bool]], keep: Path, folder: Path, jobs: int, plain: bool) -> None:
    """Verify each, tell as they come what was found; held-back jobs are only counted."""
    homes: dict[str, Path] = {}
    for name in sorted({one for fault, _ in todo if (one := verified.environment_for(fault)) is not None}):
        homes[name] = environments.make(environments.named(name), folder, lambda text: typer.echo(text, err=True))
    console = Console(stderr=True)
    for number, result in enumerate(_results(todo, homes, jobs, plain), 1):
        verified.keep(result, keep)
        console.print(f"[{number}/{len(todo)}] {result.seconds:.1f} s", highlight=False, markup=False)


def _results(
    todo: list[tuple[Fault, bool]], homes: dict[str, Path], jobs: int, plain: bool
) -> Iterator[verified.Verified]:
    with ThreadPoolExecutor(jobs) as pool:
        futures = [
            pool.submit(
                verified.verify, fault, homes.get(verified.environment_for(fault) or ""), twin=twin, plain=plain
            )
            for fault, twin in todo
        ]
        for future in as_completed(futures):
            yield future.result()
