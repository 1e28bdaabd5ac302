"""`phalanx run`: starts a job on this machine, watches every rank, and says who broke it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from phalanx import private
from phalanx.cli.recording import RunCommand, begin_recording, end_recording
from phalanx.cli.verifying import Sampling, sampler_for, say_verified
from phalanx.frameworks.launching import ROLES
from phalanx.notify.channels import ChannelError
from phalanx.notify.metrics import MetricsError
from phalanx.notify.outlets import open_outlets
from phalanx.replay.record import Mode
from phalanx.run.bundle import make_folder
from phalanx.run.job import Job
from phalanx.run.plan import Plan, PlanError, make_plan
from phalanx.run.screen import Screen
from phalanx.run.spec import JobSpec, OnStall

_EXAMPLES = """\
Examples:

    phalanx run -n 4 train.py --epochs 3

    phalanx run -n 2 -m package.train

    phalanx run --roles chief=1,worker=2,ps=1 train.py

    phalanx run -n 2 -- ./start.sh

    phalanx run -n 8 --on ssh://a,b train.py

What stands after the script is the script's. Exits with the job's own status; 2 if the job could not be started."""


class RunFormat(StrEnum):
    """How the verdict is written."""

    TEXT = "text"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    settings = {"allow_interspersed_args": False, "ignore_unknown_options": False}
    app.command(cls=RunCommand, epilog=_EXAMPLES, context_settings=settings)(run)


def run(
    command: Annotated[list[str], typer.Argument(help="The script and its arguments.", show_default=False)],
    size: Annotated[int | None, typer.Option("-n", "--ranks", help="How many ranks to start.")] = None,
    module: Annotated[bool, typer.Option("-m", help="What follows is a module, as for python -m.")] = False,
    framework: Annotated[
        str | None, typer.Option(help="torch, tensorflow, keras, horovod, jax, mpi or none; else the script tells it.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            help="A variable for every rank: NAME=VALUE, or NAME for its value here, which no list of processes shows.",
        ),
    ] = None,
    devices: Annotated[
        str | None, typer.Option(help="Devices to use: 0,1,2,3; by rank: 0/1,2; none to hide them all.")
    ] = None,
    roles: Annotated[str | None, typer.Option(help="TensorFlow's tasks: chief=1,worker=2,ps=1,evaluator=1.")] = None,
    virtual_devices: Annotated[
        int, typer.Option(help="Divide the processor into so many devices (TensorFlow, Keras, JAX).", min=0)
    ] = 0,
    timeout: Annotated[float | None, typer.Option(help="End the job after so many seconds.", min=0.1)] = None,
    max_restarts: Annotated[int, typer.Option(help="Start again so often when a rank fails.", min=0)] = 0,
    grace: Annotated[
        float, typer.Option(help="Seconds that ranks get for their last words before they are killed.", min=0.0)
    ] = 5.0,
    on_stall: Annotated[OnStall, typer.Option(help="What to do when the ranks stand still.")] = OnStall.REPORT,
    stall_after: Annotated[
        float, typer.Option(help="Seconds without progress below which nothing is a stall.", min=0.5)
    ] = 8.0,
    stall_at_most: Annotated[
        float, typer.Option(help="Seconds without progress above which everything is a stall.", min=1.0)
    ] = 600.0,
    inside: Annotated[bool, typer.Option("--inside/--no-inside", help="Watch ranks from inside too (PyTorch).")] = True,
    record: Annotated[
        Mode | None,
        typer.Option(
            help="Record every collective, to be replayed: light if nothing follows, --record=ring, --record=full.",
            metavar="[light|ring|full]",
        ),
    ] = None,
    record_steps: Annotated[
        int, typer.Option(help="With ring: keep the results of at least so many steps.", min=1)
    ] = 4,
    checkpoint_every: Annotated[
        int, typer.Option(help="With a recording: a checkpoint after so many steps; 0 for none.", min=0)
    ] = 100,
    checkpoint_minutes: Annotated[
        float, typer.Option(help="With a recording: a checkpoint after so many minutes; 0 for none.", min=0.0)
    ] = 0.0,
    verify: Annotated[
        Sampling | None,
        typer.Option(
            help="Look at a few steps for what is wrong with training that raises no error.", metavar="sample"
        ),
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(help="Folder for the evidence; phalanx-runs/TIME-NAME otherwise.")
    ] = None,
    share: Annotated[
        bool, typer.Option("--share", help="Let others read the bundle when the job has ended, as your umask says.")
    ] = False,
    python: Annotated[
        str | None, typer.Option(help="The interpreter that runs the script; this one otherwise.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="First look for what would stop the job (phalanx check); then start it.")
    ] = False,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            help="Tell the verdict: https://… (JSON), slack:https://…, cmd:COMMAND, mailto:USER@HOST.",
            show_default=False,
        ),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(help="Prometheus metrics at [HOST:]PORT, or in FILE.prom.", show_default=False)
    ] = None,
    on: Annotated[str | None, typer.Option(help="Where: ssh://a,b or another engine; this machine otherwise.")] = None,
    given: Annotated[list[str] | None, typer.Option("--with", help="Something to tell the engine: NAME=VALUE.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen and do nothing.")] = False,
    form: Annotated[
        RunFormat, typer.Option("--format", "-f", help="json: the report alone on standard output.")
    ] = RunFormat.TEXT,
) -> None:
    """Start a training job on this machine and say who broke it, if somebody does.

    Sets what torchrun, horovodrun or a hand-made TF_CONFIG would. The script is unchanged. Output, exits, stacks and
    environment of every rank are kept in a folder that `phalanx diagnose` reads.
    """
    recorder = begin_recording(record, command, module, record_steps, checkpoint_every, checkpoint_minutes * 60)
    try:
        sampler = sampler_for(verify, command, module, recorder, on)
        spec = JobSpec(
            command=tuple(command),
            size=size,
            is_module=module,
            is_program=is_after_dashes(command),
            framework=framework,
            environment=variables(env or []),
            devices=devices,
            roles=_roles(roles),
            virtual_devices=virtual_devices,
            timeout=timeout,
            max_restarts=max_restarts,
            on_stall=on_stall,
            inside=inside,
            grace=grace,
            stall_after=stall_after,
            stall_at_most=stall_at_most,
            python=python,
        )
        plan = make_plan(spec, os.environ, Path.cwd(), recorder or sampler)
        wants_json = form is RunFormat.JSON
        if check and on is not None:
            raise PlanError(
                "--check looks at this machine: for the hosts of an engine run `phalanx check --hosts a,b` first"
            )
        if on is not None and (notify or metrics):
            raise PlanError("--notify and --metrics are for jobs on this machine so far")
        if on is not None or dry_run:
            _elsewhere(plan, on or "local", variables(given or [], "--with"), bundle, dry_run, wants_json, share)
        if given:
            raise PlanError("--with is for an engine: say which by --on")
        folder = make_folder(bundle, plan.name)
        if check:
            _check_first(plan.environment, folder, command)
        screen = Screen(only_errors=wants_json)
        outlets = open_outlets(plan.name, folder, screen.say, notify or [], metrics)
    except (PlanError, ChannelError, MetricsError) as error:
        typer.echo(f"phalanx: {error}", err=True)
        raise typer.Exit(2) from error
    result = Job(plan, folder, screen, outlets=outlets).run()
    if recorder is not None:
        end_recording(folder, recorder, result.report, spec)
    if sampler is not None:
        say_verified(plan, folder, command, is_text=not wants_json)
    if share:
        private.share(folder)
    if wants_json:
        sys.stdout.write(json.dumps(result.report, indent=2, ensure_ascii=False) + "\n")
    raise typer.Exit(result.status)


def _check_first(environment: Mapping[str, str], folder: Path, command: Sequence[str]) -> None:
    """Stop here if the job would be stopped anyway, by this machine or by its script; what could not be looked at does not stop it."""
    from phalanx.cli.linting import with_scripts
    from phalanx.preflight.check import examine
    from phalanx.preflight.options import CheckOptions
    from phalanx.preflight.targets import this_machine
    from phalanx.report.checked import print_checked

    began = time.monotonic()
    report = examine([this_machine()], CheckOptions(environment=environment, paths=(str(folder),), network=False))
    report = with_scripts(report, command[:1])
    if any(one.severity == "error" and one.confidence.value != "possible" for one in report.findings):
        print_checked(report, time.monotonic() - began, Console(stderr=True, highlight=False))
        typer.echo("phalanx: not started; without --check it is", err=True)
        raise typer.Exit(2)


def _elsewhere(
    plan: Plan, on: str, options: dict[str, str], bundle: Path | None, dry_run: bool, wants_json: bool, share: bool
) -> NoReturn:
    """Through a driver and an agent on each node. Imported here: a job on this machine needs none of it."""
    from phalanx.remote.launch import job_of, launch, preview

    job = job_of(plan, on, options)
    if dry_run:
        typer.echo(preview(job))
        raise typer.Exit
    ended = launch(job, plan, Screen(only_errors=wants_json), bundle)
    if share:
        private.share(ended.bundle)
    if wants_json:
        sys.stdout.write(json.dumps(ended.report, indent=2, ensure_ascii=False) + "\n")
    raise typer.Exit(ended.status)


def is_after_dashes(command: list[str]) -> bool:
    """Whether the command stood behind `--`, which the parser takes away."""
    before = sys.argv[: len(sys.argv) - len(command)]
    return bool(before) and before[-1] == "--"


def variables(given: list[str], option: str = "--env") -> dict[str, str]:
    found = {}
    for item in given:
        name, mark, value = item.partition("=")
        if not mark and option == "--env" and name in os.environ:
            value = os.environ[name]
        elif not mark or not name:
            raise PlanError(f"{option} {item}: give NAME=VALUE")
        found[name] = value
    return found


def _roles(given: str | None) -> dict[str, int]:
    if given is None:
        return {}
    found: dict[str, int] = {}
    for item in given.split(","):
        name, _, count = item.strip().partition("=")
        if name not in ROLES or not count.isdigit() or (name in ("chief", "evaluator") and int(count) > 1):
            raise PlanError(f"--roles {given}: give counts of {', '.join(ROLES)}, as in chief=1,worker=2,ps=1")
        found[name] = int(count)
    if not sum(found.values()):
        raise PlanError(f"--roles {given}: no tasks at all")
    return found
