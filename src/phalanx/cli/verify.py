"""`phalanx verify`: runs a few steps of a training job and says what is wrong with training that raises no error."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from phalanx import private
from phalanx.cli.recording import sources_folder
from phalanx.cli.run import is_after_dashes, variables
from phalanx.cli.verifying import evidence_of, observer_for, one_that_spawns
from phalanx.model import Report, Unchecked
from phalanx.model import bundle as layout
from phalanx.model.figure import Figure
from phalanx.report import Format, print_text, render
from phalanx.report.html import render_html
from phalanx.run.ending import Reason
from phalanx.run.job import Job, Result
from phalanx.run.plan import PlanError, make_plan
from phalanx.run.recorder import Recorder
from phalanx.run.screen import Screen
from phalanx.run.spec import JobSpec, OnStall
from phalanx.verification import observe
from phalanx.verification.distance import distances
from phalanx.verification.evidence import Evidence
from phalanx.verification.judge import judge

_EXAMPLES = """\
Examples:

    phalanx verify -n 4 train.py --epochs 1

    phalanx verify -n 2 --steps 40 -m package.train

    phalanx verify -n 4 --against 1 train.py

    phalanx verify -n 2 --resume-with '--resume' train.py --steps 40

    phalanx verify -n 2 --format html -o verify.html train.py

What stands after the script is the script's. Exits with 0 if nothing is wrong, 1 with findings, 2 if it could not be verified."""

_PATIENCE = (
    30.0  # seconds without a sign of progress: a busy machine is no hang, and a hang is not what is looked for here
)


class VerifyFormat(StrEnum):
    """How the report is written."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    settings = {"allow_interspersed_args": False, "ignore_unknown_options": False}
    app.command(epilog=_EXAMPLES, context_settings=settings)(verify)


def verify(
    command: Annotated[list[str], typer.Argument(help="The script and its arguments.", show_default=False)],
    size: Annotated[int, typer.Option("-n", "--ranks", help="How many ranks to start.", min=1)],
    module: Annotated[bool, typer.Option("-m", help="What follows is a module, as for python -m.")] = False,
    steps: Annotated[int, typer.Option(help="End after so many optimizer steps.", min=0)] = 0,
    epochs: Annotated[int, typer.Option(help="End after so many passes over a data loader.", min=0)] = 0,
    timeout: Annotated[float | None, typer.Option(help="End the job after so many seconds.", min=0.1)] = None,
    framework: Annotated[str | None, typer.Option(help="torch or horovod; else the script tells it.")] = None,
    env: Annotated[list[str] | None, typer.Option("--env", help="A variable for every rank: NAME=VALUE.")] = None,
    against: Annotated[
        int | None,
        typer.Option(
            help="1: give the batches of all ranks, joined, to one process, and compare the gradients.", min=1, max=1
        ),
    ] = None,
    resume_with: Annotated[
        str | None,
        typer.Option(
            help="Also kill the job after half and start it again with these arguments; say what it lacks then."
        ),
    ] = None,
    keep: Annotated[Path | None, typer.Option(help="Keep the evidence in this new folder.")] = None,
    python: Annotated[
        str | None, typer.Option(help="The interpreter that runs the script; this one otherwise.")
    ] = None,
    form: Annotated[VerifyFormat, typer.Option("--format", "-f", help="How to write the report.")] = VerifyFormat.TEXT,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the report to this file.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show all findings, evidence and fixes.")] = False,
) -> None:
    """Run a few steps and say what is wrong: gradients that are not synchronised, weights that differ, schedules that run away.

    The script is unchanged. An observer in each rank writes fingerprints of parameters, gradients, data and schedules, which
    are compared across ranks. Without --steps or --epochs the job runs to its own end, or for a minute of training.
    """
    folder = keep or Path(tempfile.mkdtemp(prefix="phalanx-verify-"))
    try:
        if keep is not None:
            _make(keep)
        seconds = 0.0 if steps or epochs else observe.LONGEST
        sources = sources_folder(command, module)
        spec = JobSpec(
            command=tuple(command),
            size=size,
            is_module=module,
            is_program=is_after_dashes(command),
            framework=framework,
            environment=variables(env or []),
            timeout=timeout,
            on_stall=OnStall.ABORT,
            stall_after=_PATIENCE,
            python=python,
        )
        observer = observer_for(sources, steps=steps, epochs=epochs, seconds=seconds)
        if not module and observe.starts_ranks(Path(command[0])):
            spec, observer = _spawning(spec, observer, against is not None or resume_with is not None)
        wants_text = form is VerifyFormat.TEXT and output is None
        report, figures = _report(
            spec, observer, folder, sources, wants_text, keep is not None, against, resume_with, steps
        )
    except PlanError as error:
        typer.echo(f"phalanx: {error}", err=True)
        raise typer.Exit(2) from error
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    _write(report, figures, form, output, everything)
    raise typer.Exit(1 if report.findings else 0 if report.is_complete else 2)


def _spawning(spec: JobSpec, observer: Recorder, compares: bool) -> tuple[JobSpec, Recorder]:
    name = spec.command[0]
    if compares:
        raise PlanError(
            f"{name} starts its ranks itself: --against and --resume-with need a script that is started once for each rank"
        )
    typer.echo(
        f"phalanx: {name} starts its ranks itself: it is run once, and each rank it starts is observed", err=True
    )
    return one_that_spawns(spec, observer)


class _Quiet(Screen):
    """For runs that are compared: what the ranks print is shown, not how each run began and ended."""

    def say(self, text: str) -> None:
        """Nothing."""


def _make(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise PlanError(f"--keep {folder}: the folder is not empty; give a new one")
    private.make_folder(folder)


def _report(
    spec: JobSpec,
    observer: Recorder,
    folder: Path,
    sources: Path,
    wants_text: bool,
    is_kept: bool,
    against: int | None,
    resume_with: str | None,
    steps: int,
) -> tuple[Report, tuple[Figure, ...]]:
    """Of one run, or of the runs that a comparison needs."""
    if against is None and resume_with is None:
        return _verify(spec, observer, folder, sources, wants_text, is_kept)
    from phalanx.cli.verifying_twice import Ran, verify_against_one, verify_resume

    if against is not None and resume_with is not None:
        raise PlanError("--against and --resume-with exclude each other: give one of them")
    if against is not None and spec.size == 1:
        raise PlanError("--against 1 compares several ranks with one: give -n 2 or more")

    def run(spec: JobSpec, name: str, **settings: Any) -> Ran:
        """One of the runs, in a folder of its own."""
        place = folder / name
        private.make_folder(place)
        told = replace(observer, settings={**observer.settings, **settings})
        plan = make_plan(spec, os.environ, Path.cwd(), told)
        typer.echo(f"phalanx: run {name}", err=True)
        result = Job(plan, place, _Quiet(only_errors=True), diagnoses=lambda _: False, is_kept=is_kept).run()
        evidence = evidence_of(plan, place, sources)
        attempt = layout.attempt_folder(place, 0)
        folders = {seat.rank: layout.rank_folder(attempt, seat.rank) / layout.RECORD for seat in plan.seats}
        failed = result.status != 0 and not _ended_by_us(evidence, result.reason)
        return Ran(evidence, result.reason.text if failed else "", folders)

    if against is not None:
        return verify_against_one(spec, run), ()
    return verify_resume(spec, resume_with or "", steps, folder, Path.cwd(), run), ()


def _verify(
    spec: JobSpec, observer: Recorder, folder: Path, sources: Path, wants_text: bool, is_kept: bool
) -> tuple[Report, tuple[Figure, ...]]:
    plan = make_plan(spec, os.environ, Path.cwd(), observer)
    screen = Screen(only_errors=not wants_text)
    result = Job(plan, folder, screen, diagnoses=lambda reason: reason.status != 0, is_kept=is_kept).run()
    evidence = evidence_of(plan, folder, sources)
    report = judge(evidence)
    if result.status != 0 and not _ended_by_us(evidence, result.reason):
        report = _with_failure(report, result, spec.command[:1])
    return report, distances(evidence)


def _ended_by_us(evidence: Evidence, reason: Reason) -> bool:
    """Ranks that had come as far as was wanted may lose one another on the way out; that is no failure of the job."""
    return bool(evidence.ranks) and all(one.all("enough") for one in evidence.ranks.values())


def _with_failure(report: Report, result: Result, scripts: Sequence[str]) -> Report:
    """The job itself failed: what it did before is judged, and that it is not the whole is said.

    Where ranks lost one another or hung, the script may show why: a collective that some of them never reach.
    """
    from phalanx.cli.linting import with_scripts

    verdict = (result.report or {}).get("verdict") or {}
    said = verdict.get("headline") or result.reason.text
    needs = "a job that ends well: the failure comes first"
    is_apart = verdict.get("symptom") in ("fail.communication-error", "perf.hang")
    shown = with_scripts(replace(report, findings=()), scripts).findings if is_apart else ()
    return replace(
        report,
        findings=(*report.findings, *(one for one in shown if one.symptom == "perf.hang")),
        not_checked=(Unchecked(f"the whole run: {said}", needs, essential=True), *report.not_checked),
    )


def _write(
    report: Report, figures: tuple[Figure, ...], form: VerifyFormat, output: Path | None, everything: bool
) -> None:
    if form is VerifyFormat.TEXT:
        if output is None:
            print_text(report, everything=everything)
            return
        from rich.console import Console

        with private.open_new(output) as file:
            print_text(report, everything=everything, console=Console(file=file, highlight=False))
        return
    text = render_html(report, figures) if form is VerifyFormat.HTML else render(report, Format.JSON)
    if output is None:
        sys.stdout.write(text)
    else:
        private.write_text(output, text)
