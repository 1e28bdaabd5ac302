"""Looks at a job on several machines at once: each runs `phalanx.attaching.collecting`, and what they say is put together here.

How a machine is reached is a command: ssh, srun into the allocation of a Slurm job, kubectl exec, or one that the user gives. All
start together, so that the time is that of one machine, and one that does not answer costs one time-out.
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from phalanx.attaching.discovery import FoundJob, Process
from phalanx.attaching.evidence import Piece, Scene, gather
from phalanx.attaching.jobs import AttachError
from phalanx.attaching.looks import JobMotion, RankMotion, look_at_job
from phalanx.attaching.plain import from_plain, to_plain
from phalanx.attaching.reach import Reach
from phalanx.attaching.signs_of_life import quiet_of
from phalanx.run.watch.stacks import ProcessStacks, Thread
from phalanx.sources.secrets import redact, redact_command, redact_environment

_MARK = "phalanx-attach-view "  # before the JSON: a login shell may print whatever it likes around it
_FAILED = "phalanx-attach-failed "  # before what one of several machines says that could not look
_MOST_VALUE = 120
_ANSWER_S = 60.0


@dataclass(frozen=True, slots=True)
class View:
    """One job as one machine sees it."""

    job: FoundJob
    motion: JobMotion
    evidence: tuple[Piece, ...] = ()
    notes: tuple[str, ...] = ()


def collect_line(jobs: Sequence[FoundJob], *, may_ask: bool = False) -> str:
    """What `collecting` prints: all jobs of this machine, looked at at one time, without secrets."""
    here = socket.gethostname()
    with ThreadPoolExecutor(max(len(jobs), 1)) as pool:
        views = list(pool.map(lambda job: _view(job, here, may_ask), jobs))
    return _MARK + json.dumps({"host": here, "views": to_plain(views)})


def _view(job: FoundJob, here: str, may_ask: bool) -> View:
    """Evidence is read only where somebody waits: a job that gets on needs none."""
    motion = look_at_job({one.identity.rank: one.process.pid for one in job.ranks}, job.size)
    scene = Scene(job, here, motion.quiet, may_ask)
    evidence = () if motion.is_moving else gather(scene)
    clean = replace(motion, ranks={rank: _clean(one) for rank, one in motion.ranks.items()})
    return View(_without_secrets(job, here), clean, evidence, tuple(scene.notes))


def read_views(output: str) -> list[tuple[str, list[View]]]:
    """The machines that answered, with their jobs; other lines of the output are left out."""
    found = []
    for line in output.splitlines():
        _, mark, text = line.partition(_MARK)
        if not mark:
            continue
        try:
            document = json.loads(text)
            found.append((str(document["host"]), [from_plain(View, view) for view in document["views"]]))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return found


def ask_all(reaches: Sequence[Reach], say: Callable[[str], None], timeout: float = _ANSWER_S) -> list[View]:
    """Every machine's views; one that does not answer is said, and left out. Raises AttachError if none answers."""
    with ThreadPoolExecutor(max(len(reaches), 1)) as pool:  # all at once: one time-out, however many are silent
        answers = list(pool.map(lambda reach: _ask(reach, timeout), reaches))
    for reach, (_, error) in zip(reaches, answers, strict=True):
        if error:
            say(f"{reach.name}: {error}")
    if all(views is None for views, _ in answers):
        raise AttachError("no machine answered")
    return [view for views, _ in answers for view in views or ()]


def _ask(reach: Reach, timeout: float) -> tuple[list[View] | None, str]:
    """What it sees, None if nothing came back, and what went wrong."""
    try:
        done = subprocess.run(
            reach.command, capture_output=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer within {timeout:.0f} s"
    except OSError as error:
        return None, f"{reach.command[0]}: {error.strerror}"
    answered = read_views(done.stdout.decode("utf-8", "replace"))
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    if not answered:
        return None, (said[-1][:300] if said else f"it ended with status {done.returncode} and said nothing")
    failed = [line.removeprefix(_FAILED) for line in said if line.startswith(_FAILED)]
    return [view for _, views in answered for view in views], "; ".join(failed)[:300]


def merge(views: Sequence[View]) -> list[View]:
    """One view a job: the ranks of all machines that have the same key, each rank once."""
    by_key: dict[str, list[View]] = {}
    for view in views:
        by_key.setdefault(view.job.key, []).append(view)
    merged = []
    for key, parts in by_key.items():
        ranks = {one.identity.rank: one for part in parts for one in part.job.ranks}
        motions: dict[int, RankMotion] = {}
        for part in parts:  # a machine that two names reach is seen twice: the look that got a stack counts
            motions |= {r: one for r, one in part.motion.ranks.items() if r not in motions or not one.stacks.error}
        links = tuple(dict.fromkeys(link for part in parts for link in part.motion.links))
        traffic, steps = sum(part.motion.traffic for part in parts), max(part.motion.steps for part in parts)
        job = FoundJob(key, tuple(ranks[rank] for rank in sorted(ranks)), parts[0].job.launcher)
        seconds = max(part.motion.seconds for part in parts)
        evidence = tuple(dict.fromkeys(piece for part in parts for piece in part.evidence))
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        merged.append(View(job, JobMotion(motions, seconds, quiet_of(links), links, traffic, steps), evidence, notes))
    return sorted(merged, key=lambda view: -len(view.job.ranks))


def _without_secrets(job: FoundJob, host: str) -> FoundJob:
    def clean(process: Process) -> Process:
        variables = redact_environment(process.variables) if process.variables is not None else None
        return replace(process, command=tuple(redact_command(process.command)), variables=variables)

    ranks = tuple(replace(one, process=clean(one.process), host=host) for one in job.ranks)
    return replace(job, ranks=ranks, launcher=clean(job.launcher) if job.launcher is not None else None)


def _clean(one: RankMotion) -> RankMotion:
    """Of variables only numbers and short names stay, which is what the judgement reads."""

    def short(thread: Thread) -> Thread:
        values = tuple(
            {name: redact(value) for name, value in told.items() if len(value) <= _MOST_VALUE and "\n" not in value}
            for told in thread.values
        )
        return replace(thread, values=values)

    def all_short(stacks: ProcessStacks) -> ProcessStacks:
        return replace(stacks, threads=tuple(map(short, stacks.threads)), command=redact(stacks.command))

    return replace(
        one,
        threads=tuple(map(short, one.threads)),
        stacks=all_short(one.stacks),
        workers=tuple(map(all_short, one.workers)),
    )
