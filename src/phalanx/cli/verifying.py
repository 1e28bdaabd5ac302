"""What `phalanx verify` and `phalanx run --verify` share: the observer that ranks load, and the report of what it saw."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import typer

from phalanx import private
from phalanx.cli.recording import sources_folder
from phalanx.model import Report
from phalanx.model import bundle as layout
from phalanx.replay.record import INSIDE as RECORDER
from phalanx.report import print_text
from phalanx.run.plan import Plan, PlanError
from phalanx.run.recorder import Recorder
from phalanx.run.spec import JobSpec, OnStall
from phalanx.verification import observe
from phalanx.verification.evidence import Evidence, read, read_spawned
from phalanx.verification.judge import judge

REPORT = "verify.json"  # in the bundle of `phalanx run --verify`


class Sampling(StrEnum):
    """How much of a long run is verified."""

    SAMPLE = "sample"


def observer_for(
    sources: Path, *, steps: int = 0, epochs: int = 0, seconds: float = 0.0, sample: bool = False
) -> Recorder:
    """The observer as something that ranks load."""
    return Recorder(
        observe.INSIDE,
        observe.settings_for(sources, steps, epochs, seconds, sample),
        observe.FRAMEWORKS,
        variable=observe.VARIABLE,
        beside=(RECORDER,),
    )


def sampler_for(
    mode: Sampling | None, command: list[str], is_module: bool, recorder: Recorder | None, on: str | None
) -> Recorder | None:
    """The observer of a long run; None where none is wanted. Raises PlanError where it cannot be had."""
    if mode is None:
        return None
    if recorder is not None:
        raise PlanError("--verify and --record both stand between the script and its collectives: give one of them")
    if on is not None:
        raise PlanError("--verify works on this machine only: leave --on out, or verify a few steps here first")
    return observer_for(sources_folder(command, is_module), sample=True)


def evidence_of(plan: Plan, folder: Path, sources: Path) -> Evidence:
    """What the last attempt's ranks wrote."""
    attempts = layout.attempts_of(folder)
    attempt = attempts[-1] if attempts else layout.attempt_folder(folder, 0)
    files = {seat.rank: layout.rank_folder(attempt, seat.rank) / layout.RECORD / observe.FILE for seat in plan.seats}
    if plan.recorder is not None and plan.recorder.settings.get("spawns"):
        return read_spawned(files[0], int(plan.spec.environment["WORLD_SIZE"]), sources, plan.framework.NAME)
    return read(files, plan.size, sources, plan.framework.NAME)


def one_that_spawns(spec: JobSpec, observer: Recorder) -> tuple[JobSpec, Recorder]:
    """A script that starts its ranks itself is run once; the ranks that it starts are observed."""
    assert spec.size is not None
    once = replace(
        spec,
        size=1,
        environment={"WORLD_SIZE": str(spec.size), **spec.environment},
        on_stall=OnStall.IGNORE,  # the process that waits for its ranks stands still by right
    )
    return once, replace(observer, settings={**observer.settings, "spawns": "parent", "size_wanted": spec.size})


def say_verified(plan: Plan, folder: Path, command: list[str], is_text: bool) -> Report:
    """Judge the sampled steps of a run that is over, keep the report in the bundle, and say what was found."""
    report = judge(evidence_of(plan, folder, sources_folder(command, plan.spec.is_module)))
    private.write_text(folder / REPORT, json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    if report.findings and is_text:
        print_text(report)
    else:
        found = f"{len(report.findings)} findings" if report.findings else "nothing wrong found"
        typer.echo(f"phalanx: verified: {found} in {report.scope}; {folder / REPORT}", err=True)
    return report
