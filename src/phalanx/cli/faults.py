"""`phalanx faults`: the fault zoo, and how well the diagnosis does on it."""

from __future__ import annotations

import json
import resource
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from phalanx.cli.consoles import consoles_app
from phalanx.cli.fault_tables import print_table, refuse, score_runs, show_ablation, show_runs
from phalanx.cli.silent import silent_app
from phalanx.diagnosis import diagnose_paths
from phalanx.zoo import environments, tables, watched
from phalanx.zoo.bundled import can_be_watched
from phalanx.zoo.campaign import Campaign
from phalanx.zoo.coverage import coverage
from phalanx.zoo.fault import Fault, FaultError
from phalanx.zoo.named import named_by_framework
from phalanx.zoo.picture import draw
from phalanx.zoo.reading import load_zoo
from phalanx.zoo.schedule import Result, measured_budget, remembered, still_to_do
from phalanx.zoo.score import Mark, as_json, mark, read_causes, read_report

faults_app = typer.Typer(no_args_is_help=True, help="The fault zoo: real, runnable faults, and the score on them.")
faults_app.add_typer(consoles_app, name="consoles")
faults_app.add_typer(silent_app, name="silent")
Root = Annotated[Path, typer.Option("--zoo", help="The folder of the faults.")]
Names = Annotated[list[str] | None, typer.Argument(help="Names of faults; all if none is given.")]
Environments = Annotated[
    Path, typer.Option("--environments", help="Where the virtual environments of the jobs are, made if need be.")
]
_ZOO = Path("faults")
_RUNS = Path(".zoo") / "runs"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.add_typer(faults_app, name="faults")


def _pick(root: Path, names: list[str] | None) -> list[Fault]:
    try:
        zoo = load_zoo(root)
    except FaultError as error:
        raise refuse(error) from error
    if not zoo:
        raise refuse(f"no faults below {root}; run it where the repository's folder faults/ is, or give --zoo")
    unknown = sorted(set(names or ()) - {fault.name for fault in zoo})
    if unknown:
        raise refuse(f"there is no fault {unknown[0]}; `phalanx faults list` shows all of them")
    return [fault for fault in zoo if not names or fault.name in names]


@faults_app.command("list", epilog="Example: phalanx faults list --zoo faults")
def list_faults(
    root: Root = _ZOO,
    covered: Annotated[
        bool, typer.Option("--coverage", help="What must be covered and how often it is; exit code 1 with gaps.")
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option(help="With --coverage: put which job covers what into this page, between its markers."),
    ] = None,
) -> None:
    """All faults: name, symptom, culprits, title."""
    if write is not None and not covered:
        raise refuse("--write goes with --coverage; `phalanx faults score --write` writes the score")
    if covered:
        items = coverage(_pick(root, None))
        if write is not None:
            _rewrite(write, tables.COVERAGE, tables.coverage_table(items))
        for item in items:
            gap = "" if item.covered else f"   MISSING: {item.wanted} wanted"
            typer.echo(f"{item.group:<10} {item.name:<46} {item.found:>4}{gap}")
        raise typer.Exit(0 if all(item.covered for item in items) else 1)
    for fault in _pick(root, None):
        truth = "healthy" if fault.healthy else fault.symptom
        culprits = ",".join(map(str, fault.culprit_ranks)) or "-"
        typer.echo(f"{fault.name:<48} {truth:<42} {culprits:<6} {fault.split:<6} {fault.title}")


def _rewrite(page: Path, command: str, table: tables.TextTable) -> None:
    try:
        page.write_text(tables.fill_page(page.read_text(encoding="utf-8"), command, table), encoding="utf-8")
    except (ValueError, OSError) as error:
        raise refuse(error) from error


@faults_app.command(epilog="Example: phalanx faults run torch-uneven-shards --cured")
def run(
    names: Names = None,
    root: Root = _ZOO,
    everything: Annotated[bool, typer.Option("--all", help="Run all of them.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Run the fast subset.")] = False,
    framework: Annotated[str | None, typer.Option(help="Only those of this framework.")] = None,
    cured: Annotated[bool, typer.Option("--cured", help="Run the mended twins instead, which must pass.")] = False,
    environment_folder: Environments = environments.FOLDER,
    venv: Annotated[
        Path | None, typer.Option(help="Use this environment for all, instead of the one each fault needs.")
    ] = None,
    keep: Annotated[Path, typer.Option(help="Where logs and results go: DIR/<name>.")] = _RUNS,
    record: Annotated[bool, typer.Option("--record", help="Write logs into the faults' own folders.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Leave out what passed before in --keep.")] = False,
    through: Annotated[
        str | None, typer.Option("--with", help="phalanx-run: start the jobs by `phalanx run`, and keep its bundles.")
    ] = None,
    note: Annotated[bool, typer.Option(help="Write passed cures and healthy jobs into proven.json.")] = True,
    jobs: Annotated[int | None, typer.Option(min=1, help="How many at one time. Default: cores + 1.")] = None,
) -> None:
    """Run faults for real, each bounded in time, and keep what a user would have of them.

    A fault must show itself; a cured twin or a healthy job must end well. Cures that pass are noted in
    proven.json. Exit code 1 if any did otherwise.
    """
    if not (names or everything or quick or framework):
        raise refuse("name the faults to run, or give --all, --quick or --framework")
    if through not in (None, "phalanx-run"):
        raise refuse(f"--with {through}: it is phalanx-run, or left out")
    by_us = through is not None
    picked = [
        fault
        for fault in _pick(root, names)
        if (not by_us or can_be_watched(fault))
        if (not quick or fault.quick) and framework in (None, fault.framework) and not (cured and fault.healthy)
    ]
    if resume:
        picked = still_to_do(picked, keep, cured=cured, watched=by_us)
    # a crash is part of many faults; its core file is not
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    homes = _make_environments(picked, cured, venv, environment_folder)
    campaign = Campaign(homes, keep, cured, by_us, record, root if note else None)
    _stop_on_signals(campaign.stop)
    failed = _show(campaign.run(picked, measured_budget(jobs)), len(picked), "cures" if cured else "faults")
    if campaign.stop.is_set():
        typer.echo("phalanx: stopped; `--resume` goes on from here", err=True)
        raise typer.Exit(130)
    if by_us and not cured:
        show_runs(watched.read_runs(picked, keep))
    kind = [one for one in remembered(keep) if one.name in homes and (one.cured, one.watched) == (cured, by_us)]
    for line in tables.heavier_than_set_aside(kind):
        typer.echo(line)
    typer.echo(f"{len(picked) - failed} of {len(picked)} as they must be; logs in {keep}")
    raise typer.Exit(1 if failed else 0)


def _show(results: Iterator[Result], expected: int, what: str) -> int:
    """Print results as they come, with a bar in a terminal; how many were not as they must be."""
    failed = 0
    console = Console(stderr=True)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=expected)
        for number, result in enumerate(results, 1):
            progress.advance(task)
            failed += not result.good
            word = "ok" if result.good else f"FAILED: {result.why}"
            typer.echo(f"[{number}/{expected}] {result.name}: {word} ({result.seconds:.1f} s)")
    return failed


@faults_app.command(epilog="Example: phalanx faults score --split test --misses")
def score(
    names: Names = None,
    root: Root = _ZOO,
    split: Annotated[str | None, typer.Option(help="Only this split: train or test.")] = None,
    form: Annotated[str, typer.Option("--format", help="text, json or markdown.")] = "text",
    misses: Annotated[bool, typer.Option(help="List what was missed (not for the test split).")] = False,
    reports: Annotated[
        Path | None, typer.Option(help="Score another tool's reports, DIR/<name>.json, instead of diagnosing.")
    ] = None,
    logs: Annotated[
        Path | None, typer.Option(help="Diagnose DIR/<name>, as `faults run` left it, not what is recorded.")
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw the score into this file.")] = None,
    write: Annotated[Path | None, typer.Option(help="Put the tables into this page, between its markers.")] = None,
    runs: Annotated[
        Path | None,
        typer.Option(help="Score what `faults run --with phalanx-run --keep DIR` left: verdicts and times."),
    ] = None,
    ablated: Annotated[
        bool,
        typer.Option(
            "--ablate",
            help="Show what changes without each detector, blame strategy and rule; without names also on the rules' own cases.",
        ),
    ] = False,
) -> None:
    """Score verdicts on the logs of the faults: hits beside false accusations and false alarms."""
    if form not in ("text", "json", "markdown"):
        raise refuse(f"--format {form}: it is one of text, json, markdown")
    picked = [fault for fault in _pick(root, names) if split in (None, fault.split)]
    if runs is not None:
        score_runs(watched.read_runs(picked, runs), form, write)
        return
    if ablated:
        show_ablation(picked, root, form, misses, with_cases=not names)
        return
    try:
        marks = list(_marks(picked, root, logs, reports))
        page = tables.fill_score(write.read_text(encoding="utf-8"), marks) if write else None
    except (FaultError, ValueError, OSError) as error:
        raise refuse(error) from error
    if not marks:
        raise refuse("there is nothing to score: no logs or reports of the faults asked for")
    if svg is not None:
        svg.write_text(draw(marks), encoding="utf-8")
    if write is not None and page is not None:
        write.write_text(page, encoding="utf-8")
    if form == "json":
        typer.echo(json.dumps(as_json(marks), indent=2))
        return
    shown = [tables.score_table(marks, times=reports is None), tables.named_table(marks)]
    if form == "markdown":
        typer.echo("\n\n".join(table.markdown() for table in shown))
        return
    for table in shown:
        print_table(table)
    if misses:
        typer.echo("\n".join(tables.misses(marks)))


@faults_app.command("environments")
def make_environments(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which ones; the names alone are listed if none is.")
    ] = None,
    folder: Environments = environments.FOLDER,
) -> None:
    """Make virtual environments with TensorFlow, Keras, JAX or Horovod, for the zoo's jobs and for the tests.

    Example: `phalanx faults environments tensorflow horovod` (Horovod is compiled from source).
    """
    if not names:
        for one in environments.ENVIRONMENTS:
            typer.echo(f"{one.name}: {', '.join(sorted(one.provides))}")
        return
    try:
        for name in names:
            environments.make(environments.named(name), folder.absolute(), lambda text: typer.echo(text, err=True))
    except FaultError as error:
        raise refuse(error) from error


def _marks(picked: list[Fault], root: Path, logs: Path | None, reports: Path | None) -> Iterator[Mark]:
    """Each fault's mark; a fault without logs is left out, one without another tool's report counts as missed."""
    causes = read_causes(root)
    console = Console(stderr=True)
    from rich.progress import track

    for fault in track(picked, "faults", console=console, transient=True, disable=not console.is_terminal):
        where = logs / fault.name if logs is not None else fault.recorded
        if not where.is_dir():
            continue
        named = named_by_framework(fault, where)
        if reports is not None:
            yield mark(fault, read_report(reports / f"{fault.name}.json"), causes=causes, named=named)
            continue
        began = time.perf_counter()
        report = diagnose_paths([str(where)]).to_json()
        yield mark(fault, report, causes=causes, named=named, seconds=time.perf_counter() - began)


def _stop_on_signals(stop: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())


def _make_environments(picked: list[Fault], cured: bool, venv: Path | None, folder: Path) -> dict[str, Path]:
    """Where each fault runs; environments that are missing are made first."""
    if venv is not None:
        if not (venv / "bin" / "python").exists():
            raise refuse(f"--venv {venv}: there is no bin/python in it")
        return {fault.name: venv.absolute() for fault in picked}
    try:
        wanted = {fault.name: environments.environment_of(fault, cured=cured) for fault in picked}
        made = {
            one.name: environments.make(one, folder.absolute(), lambda text: typer.echo(text, err=True))
            for one in dict.fromkeys(wanted.values())
        }
    except FaultError as error:
        raise refuse(error) from error
    return {name: made[one.name] for name, one in wanted.items()}
