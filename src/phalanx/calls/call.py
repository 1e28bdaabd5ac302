"""A call that is under way: its state, its ranks' output, its results, and its end."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from phalanx.backends import load_backend
from phalanx.backends.backend import BackendError, State
from phalanx.calls.errors import CallCancelled, CannotStart, JobFailed, NotFinished, PhalanxError
from phalanx.calls.failing import failure_of, missing_result
from phalanx.calls.settings import Settings
from phalanx.calls.travel import framework_of, modules_to_copy, search_path
from phalanx.model import bundle as layout
from phalanx.model.printable import printable
from phalanx.remote.agent_pool import plan_job
from phalanx.remote.agreement import needed_packages
from phalanx.remote.driver import Driver
from phalanx.remote.dry_run import describe_plan
from phalanx.remote.job import Job, Outcome, StartError
from phalanx.remote.packing import PackingError, pack
from phalanx.remote.pickles import PicklingError, dump, explain, load, named_modules
from phalanx.remote.viewer import Cell, Viewer
from phalanx.remote.worker import RESULT
from phalanx.run.bundle import make_folder
from phalanx.run.plan import PlanError

R = TypeVar("R")
_LOOK = 0.2
_unfinished: weakref.WeakSet[Call[Any]] = weakref.WeakSet()


@dataclass(frozen=True, slots=True)
class Status:
    """Where a call is."""

    state: str  # queued, starting, running, done, failed, cancelled
    ranks: Mapping[int, Mapping[str, Any]]  # step, steps_per_second, memory, behind; as far as they are known
    attempt: int
    seconds: float
    engine: str  # what the engine says of it, as `Resources` of a queue

    def __str__(self) -> str:
        rates = [rate for one in self.ranks.values() if (rate := one.get("steps_per_second"))]
        steps = [step for one in self.ranks.values() if (step := one.get("step")) is not None]
        parts = [self.state + (f" ({self.engine})" if self.engine else ""), f"{self.seconds:.0f} s"]
        parts += [f"{len(self.ranks)} ranks"] if self.ranks else []
        parts += [f"step {min(steps)}"] if steps else []
        parts += [f"{min(rates):.3g} steps/s"] if rates else []
        return ", ".join(parts)


class Call(Generic[R]):
    """One call of a function on its workers. It belongs to this process: when that ends, so does the call."""

    def __init__(
        self,
        function: Callable[..., R],
        settings: Settings,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        shows: bool,
    ) -> None:
        self.process = os.getpid()  # it belongs to
        self._began = time.monotonic()
        self._ended: float | None = None
        name = safe_name(getattr(function, "__name__", "function"))
        try:
            job = job_of(function, settings)
            self.bundle = make_folder(None, name).absolute()
            self._driver = Driver(job, self.bundle, Viewer(Cell(quiet=not shows), job.workers, shows))
            self._driver.plan()  # what the engine cannot do is told now, and not when the job leaves a queue
            self._driver.job = _packed(job, function, settings, arguments, named, self._driver.receiver.job)
        except (PlanError, BackendError, PackingError, PicklingError, OSError) as error:
            with contextlib.suppress(AttributeError):
                shutil.rmtree(self.bundle, ignore_errors=True)
            raise CannotStart(str(error)) from error
        self._outcome: Outcome | None = None
        self._error: BaseException | None = None
        self._results: list[R] | None = None
        self._failed: JobFailed | None = None
        self._loading = threading.Lock()
        self._done = threading.Event()
        _unfinished.add(self)
        threading.Thread(target=self._run, name=f"phalanx-{name}", daemon=True).start()

    @staticmethod
    def preview(function: Callable[..., Any], settings: Settings) -> str:
        """What the engine would be asked to do."""
        try:
            job = job_of(function, settings)
            return describe_plan(job, plan_job(job, Path("phalanx-runs", "JOB", "job")))
        except BackendError as error:
            raise CannotStart(str(error)) from error

    def _run(self) -> None:
        try:
            self._outcome = self._driver.run()
        except BaseException as error:  # told to whoever asks for the results
            self._error = error
        self._ended = time.monotonic()
        self._done.set()
        _unfinished.discard(self)

    def status(self) -> Status:
        """Where it is, and how its ranks fare."""
        seconds = (self._ended or time.monotonic()) - self._began
        driver = self._driver
        return Status(driver.state.value, driver.ranks(), driver.attempt, seconds, driver.engine_says)

    def done(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end, for so many seconds at most. Returns whether it has ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._done.wait(_LOOK if deadline is None else max(0.0, min(_LOOK, deadline - time.monotonic()))):
            if deadline is not None and time.monotonic() >= deadline:
                return False
        return True

    def results(self, timeout: float | None = None) -> list[R]:
        """What every rank returned, in order of ranks. Raises JobFailed, CallCancelled, CannotStart or NotFinished."""
        if not self.wait(timeout):
            raise NotFinished(f"it still runs after {timeout:g} s ({self.status()})")
        if self._error is not None:
            if self._driver.state is State.CANCELLED:
                raise CallCancelled(str(self._error))
            if isinstance(self._error, (StartError, BackendError)):
                raise CannotStart(f"{self._error}; evidence: {self.bundle}") from None
            raise self._error
        outcome = cast(Outcome, self._outcome)
        if outcome.reason.kind == "cancelled":
            raise CallCancelled(f"the call was cancelled; what it had said: {self.bundle}")
        if not outcome.is_good:
            raise self._failure(outcome)
        with self._loading:
            if self._results is None:
                self._results = self._load(outcome)
        return self._results

    def _failure(self, outcome: Outcome) -> JobFailed:
        if self._failed is None:
            self._failed = failure_of(outcome)
            shutil.rmtree(self._driver.receiver.job, ignore_errors=True)
        return self._failed

    def wait_here(self) -> list[R]:
        """As `results`, and an interruption cancels the call on all nodes before it goes on."""
        try:
            return self.results()
        except KeyboardInterrupt:
            self.cancel()
            try:
                self.wait(3 * self._driver.job.spec.grace + 30)
            except KeyboardInterrupt:
                self._driver.cancel(force=True)
                self.wait(30)
            raise

    def cancel(self, wait: bool = False) -> None:
        """End it on all nodes. Ranks have the grace to finish what they do."""
        self._driver.cancel()
        if wait:
            self.wait(3 * self._driver.job.spec.grace + 30)

    def logs(self, rank: int | None = None, follow: bool = False) -> Iterator[str]:
        """The lines of a rank, or of all ranks with their number before them; with `follow` until the call ends."""
        ranks = range(self._driver.job.workers) if rank is None else [rank]
        if rank is not None and not 0 <= rank < self._driver.job.workers:
            raise ValueError(f"rank {rank}: there are ranks 0 to {self._driver.job.workers - 1}")
        places: dict[Path, tuple[int, bytes]] = {}
        attempt = self._driver.attempt
        while True:
            is_last = not follow or self._done.is_set()
            # When the next attempt begins, the one before may still have lines that nobody has seen.
            for number in range(attempt, (attempt := self._driver.attempt) + 1):
                folder = layout.attempt_folder(self.bundle, number)
                for one in ranks:
                    path = layout.rank_folder(folder, one) / layout.OUTPUT
                    prefix = f"[{one}] " if rank is None else ""
                    for line in _new_lines(path, places, is_last or number < attempt):
                        yield prefix + line
            if is_last:
                return
            self._done.wait(_LOOK)

    def _load(self, outcome: Outcome) -> list[R]:
        results = []
        for rank in range(outcome.size):
            path = outcome.results / f"rank{rank}" / RESULT
            if not path.exists():
                raise missing_result(outcome, rank)
            try:
                results.append(load(path))
            except (MemoryError, OSError):
                raise
            except Exception as error:  # its class is not to be found here, or does not let itself be made
                raise PhalanxError(
                    f"rank {rank} returned what cannot be loaded here: {type(error).__name__}: {error}; it is kept in {path}"
                ) from error
        shutil.rmtree(self._driver.receiver.job, ignore_errors=True)
        return results

    def __repr__(self) -> str:
        return f"<phalanx.Call {self._driver.job.name}: {self.status()}>"


def safe_name(name: str) -> str:
    """A name that shells, file systems and engines take as it is."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:60] or "job"


def job_of(function: Callable[..., Any], settings: Settings) -> Job:
    """The job that a call of the function is, without what it sends. Raises BackendError or CannotStart."""
    missing = [name for name in settings.secrets if name not in os.environ]
    if missing:
        raise CannotStart(f"secrets: {', '.join(missing)} is not set here")
    spec = settings.spec
    if spec.fewest is not None and not spec.max_restarts:
        asked = f"workers=({spec.fewest}, {spec.size})"
        raise CannotStart(f"{asked} is for trying again with fewer: say retries=1 or more, or give one number")
    secrets = {name: os.environ[name] for name in settings.secrets}
    return Job(
        name=safe_name(getattr(function, "__name__", "function")),
        backend=load_backend(settings.backend),
        spec=replace(spec, framework=spec.framework or framework_of(function), secrets=secrets),
        options=settings.options,
        agreement=settings.agreement,
        checkpoints=str(Path(settings.checkpoints).absolute()) if settings.checkpoints else None,
        agent_python=settings.agent_python,
    )


def _packed(
    job: Job,
    function: Callable[..., Any],
    settings: Settings,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    folder: Path,
) -> Job:
    """The job with its call and, where it leaves this machine, its project as they are now."""
    call = folder / "call.pickle"
    root = Path(settings.project or ".").absolute()
    travels = job.backend.NAME != "local"
    copied = modules_to_copy(root) if travels else []
    said = f"{job.name} or its arguments cannot be sent to the workers"
    explain(said, lambda: dump((function, arguments, named), call, copied), ": make them inside the function")
    if not travels:
        return replace(job, call=call, path=tuple(search_path()))
    project = folder / "project.tar"
    packed = pack(root, project)
    if packed.credentials or packed.links:
        sys.stderr.write(f"phalanx: {len(packed.files)} files travel with {job.name}: {printable(packed.summary())}\n")
    packages = needed_packages(job.framework, named_modules(call))
    return replace(job, call=call, project=project, root=str(root), path=tuple(search_path()), packages=packages)


def _new_lines(path: Path, places: dict[Path, tuple[int, bytes]], is_last: bool) -> Iterator[str]:
    """What a file has got since the last look, in whole lines."""
    place, rest = places.get(path, (0, b""))
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(place)
        while piece := file.read(1 << 20):
            place += len(piece)
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace").rstrip("\r")
    if is_last and rest:
        yield rest.decode("utf-8", "replace")
        rest = b""
    places[path] = (place, rest)


@atexit.register
def _cancel_unfinished() -> None:
    """A call does not outlive the process that made it. A child that was forked from it has made none."""
    left = [call for call in _unfinished if call.process == os.getpid()]
    for call in left:
        call.cancel()
    for call in left:
        call.wait(30)
