"""Runs a fault, or its cured twin, in a scratch copy of its folder and keeps what a user would have of it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from phalanx.zoo.bundled import VERDICT, bundled_plan
from phalanx.zoo.environments import derive
from phalanx.zoo.fault import Fault, FaultError, RunPlan
from phalanx.zoo.job import TROUBLE, Job, Outcome
from phalanx.zoo.sanitise import Sanitiser

GRACE_S = 8.0
PATIENCE = 4


def run_fault(
    fault: Fault,
    venv: Path | None,
    out: Path,
    *,
    cured: bool = False,
    watched: bool = False,
    grace_s: float = GRACE_S,
    stop: threading.Event | None = None,
) -> Outcome:
    """Run the fault (or its cured form) in a scratch copy of its folder and write its logs to `out`.

    With `watched` it is started by `phalanx run`, and `out` becomes the bundle that this leaves.
    """
    plan = cured_plan(fault) if cured else fault.run
    if cured or fault.healthy or plan.ends_well or watched:
        # a job that ends by itself may take longer on a busy machine, and a watched one is ended when it hangs;
        # else a hang is cut off where its fault says
        plan = replace(plan, timeout_s=plan.timeout_s * PATIENCE)
    if watched:
        plan = bundled_plan(fault, plan, venv)
    with tempfile.TemporaryDirectory(prefix="zoo-", ignore_cleanup_errors=True) as made:
        scratch = Path(made)
        job = scratch / "job"
        shutil.copytree(fault.folder, job, ignore=shutil.ignore_patterns("recorded", "__pycache__"))
        for name in ("tmp", "logs"):
            (scratch / name).mkdir()
        if cured and (job / "cured.py").is_file():
            (job / "cured.py").replace(job / "train.py")
        path = [venv / "bin"] if venv else []
        sanitiser = Sanitiser(scratch, venv)
        # what pip installs must not change the environment that other faults run in
        if plan.launcher == "pip" and venv is not None:
            path.insert(0, derive(scratch / "venv", venv) / "bin")
            if cured:
                path, plan = _with_compiler_cache(path, plan, scratch)
        work = Job(plan, path, scratch, grace_s, stop, VERDICT if watched else TROUBLE)
        work.prepare()
        outcome = work.execute()
        if plan.layout in ("torchrun-logdir", "per-node") and (job / "logs").is_dir():
            shutil.copytree(job / "logs", scratch / "logs" / "logs")
        if watched and (job / "bundle").is_dir():
            # what was on the screen is not part of the bundle
            _keep(scratch / "logs", out.with_name(f"{out.name}.screen"), sanitiser)
            _keep(job / "bundle", out, sanitiser)
        else:
            _keep(scratch / "logs", out, sanitiser)
    return outcome


def cured_plan(fault: Fault) -> RunPlan:
    """The run with the cure's changes. Raises FaultError where there is no cure at all."""
    if fault.cure is None:
        if not fault.has_cure:
            raise FaultError(f"{fault.folder}: no cure: neither cured.py nor a [cured] table in fault.toml")
        return fault.run
    plan = fault.run
    if fault.cure.command is not None:
        plan = replace(plan, command=fault.cure.command)
    if fault.cure.env is not None:
        plan = replace(plan, env=fault.cure.env)
    if fault.cure.rank_env is not None:
        plan = replace(plan, rank_env=fault.cure.rank_env)
    if fault.cure.start is not None:
        plan = replace(plan, start=fault.cure.start)
    if fault.cure.prepare is not None:
        plan = replace(plan, prepare=fault.cure.prepare)
    if fault.cure.timeout_s is not None:
        plan = replace(plan, timeout_s=fault.cure.timeout_s)
    return plan


@dataclass(frozen=True, slots=True)
class Ending:
    """Whether a run ended as it must, and if not, what was expected."""

    good: bool
    why: str = ""


def judge_ending(fault: Fault, outcome: Outcome, logs: Path, *, cured: bool) -> Ending:
    """A fault must show; a cured or healthy job must end well and must not show what the fault shows."""
    shown = fault.run.shows is not None and _is_shown(fault.run.shows, logs)
    codes = dict(outcome.exit_codes)
    if cured or fault.healthy:
        if not outcome.clean:
            ended = f"was ended after {outcome.seconds:.0f} s" if outcome.timed_out else f"ended with {codes}"
            return Ending(False, f"it must end well, but {ended}")
        return Ending(not shown, f"it still shows {fault.run.shows!r}" if shown else "")
    if fault.run.shows is not None and not shown:
        return Ending(False, f"the fault did not show: {fault.run.shows!r} is in no log")
    if not shown and _was_cut_off_before_it_broke(fault, outcome):
        return Ending(
            False,
            f"nothing had broken when it was cut off after {outcome.seconds:.0f} s; run it again with less beside it",
        )
    if outcome.clean != fault.run.ends_well:
        expected = "end well (a silent fault)" if fault.run.ends_well else "fail or hang"
        return Ending(False, f"the fault must {expected}, but ended with {codes}")
    return Ending(True)


def _is_shown(pattern: str, logs: Path) -> bool:
    """In one of the logs, or in all of them together: what one rank says may be wrong only beside what another one says."""
    files = sorted(file for file in logs.rglob("*") if file.is_file())
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    return any(re.search(pattern, text) is not None for text in (*texts, "\n".join(texts)))


def _was_cut_off_before_it_broke(fault: Fault, outcome: Outcome) -> bool:
    """On a busy machine a job may reach its limit while it still starts: that it was ended then shows nothing.

    Only those that hang may be silent to the end, and those that ran and behave wrongly, such as a process that stays.
    """
    symptom = fault.symptom or ""
    is_silent = "hang" in symptom or (symptom.startswith("perf.") and outcome.first_s is not None)
    if not outcome.timed_out or outcome.somebody_left or is_silent:
        return False
    return outcome.spoke_s is None or outcome.spoke_s >= fault.run.timeout_s


def _with_compiler_cache(path: list[Path], plan: RunPlan, scratch: Path) -> tuple[list[Path], RunPlan]:
    """Several cures end in the same build of many minutes: where ccache is installed it is done once."""
    wrappers = Path("/usr/lib/ccache")
    if not wrappers.is_dir():
        return path, plan
    cache = {
        "CCACHE_DIR": str(Path(tempfile.gettempdir()) / f"phalanx-zoo-ccache-{os.getuid()}"),
        "CCACHE_BASEDIR": str(scratch),  # each run builds in a folder of its own; the cache must not see its name
        "CCACHE_NOHASHDIR": "1",
        # the job's own compiler script lies in another folder each time, and its name tells nothing
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_COMPILERTYPE": "gcc",
    }
    return [*path, wrappers], replace(plan, env={**plan.env, **cache})


def _keep(logs: Path, out: Path, sanitiser: Sanitiser) -> None:
    for file in logs.rglob("*"):
        if file.is_file():
            sanitiser.clean_file(file)
    if out.exists():
        shutil.rmtree(out)
    shutil.copytree(logs, out)
