"""A script on other machines, for the command line: `phalanx run --on ssh://a,b train.py`, through the same driver."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from phalanx.backends import check_options, load_backend
from phalanx.backends.backend import BackendError
from phalanx.remote.agent_pool import plan_job
from phalanx.remote.agreement import needed_packages
from phalanx.remote.driver import Driver
from phalanx.remote.dry_run import describe_plan
from phalanx.remote.job import Job, Outcome, StartError
from phalanx.remote.packing import Packed, PackingError, pack, survey
from phalanx.remote.viewer import Viewer
from phalanx.run.bundle import make_folder
from phalanx.run.plan import Plan, PlanError
from phalanx.run.screen import Screen
from phalanx.run.verdict import short_text

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Ended:
    """What the command says and exits with."""

    status: int
    report: Mapping[str, Any] | None
    bundle: Path


def job_of(plan: Plan, on: str, options: Mapping[str, str]) -> Job:
    """The job for a script. Raises PlanError, where the engine or the script does not allow it."""
    spec = plan.spec
    if plan.recorder is not None:
        raise PlanError("--record: a recording is made without --on only")
    name, _, hosts = on.partition("://")
    wishes = {**({"hosts": hosts} if hosts else {}), **options}
    agent_python = wishes.pop("agent_python", None)
    try:
        backend = load_backend(name)
        check_options(backend, wishes)
    except BackendError as error:
        raise PlanError(f"--on {on}: {error}") from error
    safe = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "-" for letter in plan.name
    )
    return Job(
        name=safe[:60] or "job",
        backend=backend,
        spec=replace(spec, size=plan.size, framework=plan.framework.NAME),
        options=wishes,
        agent_python=agent_python,
        packages=needed_packages(plan.framework.NAME, ()),
    )


def preview(job: Job) -> str:
    """What would happen. Raises PlanError."""
    try:
        text = describe_plan(job, plan_job(job, Path("phalanx-runs", "JOB", "job")))
        return text if job.backend.NAME == "local" else f"{text}\n{_listing(survey(Path.cwd()))}"
    except (BackendError, PackingError) as error:
        raise PlanError(str(error)) from error


def _count(packed: Packed) -> str:
    count = len(packed.files)
    return f"{count} file{'s travel' if count != 1 else ' travels'}"


def _listing(packed: Packed) -> str:
    """Every file that would travel."""
    lines = [
        f"{_count(packed)} from {Path.cwd()}: {packed.summary()}",
        *(f"    {name} ({size} bytes)" for name, size in packed.files),
    ]
    left = [(name, "credentials") for name in packed.credentials] + [(name, "leads out") for name in packed.links]
    return "\n".join([*lines, *(f"    not {name}: {why}" for name, why in left)])


def launch(job: Job, plan: Plan, screen: Screen, wish: Path | None) -> Ended:
    """Run the script to its end, whatever signals come. Raises PlanError where it could not be started."""
    try:
        plan_job(job, Path("job"))  # before anything is written or queued
        folder = make_folder(wish, job.name).absolute()
        driver = Driver(job, folder, Viewer(screen, job.workers))
        if job.backend.NAME != "local":
            project = driver.receiver.job / "project.tar"
            packed = pack(Path.cwd(), project)
            driver.job = replace(job, project=project, root=str(Path.cwd()))
            screen.say(f"{_count(packed)} with the job from {Path.cwd()}: {packed.summary()}")
    except (BackendError, PackingError) as error:
        raise PlanError(str(error)) from error
    screen.say(f"{job.workers} ranks on {job.backend.NAME}, {plan.told_by}")
    began = time.monotonic()
    outcome, got = _run(driver, screen)
    screen.close()
    if isinstance(outcome, Exception):
        raise PlanError(f"{outcome}; evidence: {folder}") from outcome
    if outcome.report is not None and (text := short_text(dict(outcome.report))):
        screen.say_block(text)
    more = f"; more: phalanx diagnose {folder}" if outcome.report is not None else ""
    screen.say(f"{outcome.reason.text}, after {time.monotonic() - began:.1f} s; bundle: {folder}{more}")
    return Ended(128 + got if got is not None else outcome.reason.status, outcome.report, folder)


def _run(driver: Driver, screen: Screen) -> tuple[Outcome | Exception, int | None]:
    """The driver in a thread, signals in this one. The first ends the job in good order, the second at once."""
    found: list[Outcome | Exception] = []

    def act() -> None:
        try:
            found.append(driver.run())
        except (StartError, BackendError) as error:
            found.append(error)

    got: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        got.append(number)

    before = {
        number: signal.signal(number, note) for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN
    }
    thread = threading.Thread(target=act, name="phalanx-driver", daemon=True)
    thread.start()
    heard = 0
    while thread.is_alive():
        thread.join(0.1)
        if len(got) > heard:
            heard = len(got)
            if heard == 1:
                screen.say(f"{signal.Signals(got[0]).name}: ending the job on all nodes (again to kill it at once)")
            driver.cancel(force=heard > 1)
    for number, handler in before.items():
        signal.signal(number, handler)
    if not found:
        raise PlanError("the driver broke; what it had is in the bundle")
    return found[0], got[0] if got else None
