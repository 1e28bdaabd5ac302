"""`phalanx attach`: a verdict on a job that hangs now, whoever started it."""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phalanx.model.ranks import name_ranks
from phalanx.report import Format

if TYPE_CHECKING:
    from phalanx.attach.discovery import FoundJob
    from phalanx.attach.investigation import Seen

_EXAMPLES = """\
Examples:

    phalanx attach

    phalanx attach 41237

    phalanx attach 41237 --bundle hang/ --format html --output hang.html

Nothing is injected into the job and no signal is sent to it.

Exit codes: 0 the job does not hang, 1 it hangs (the verdict says why), 2 nothing could be found or looked at."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog=_EXAMPLES)(attach)


def attach(
    pid: Annotated[
        int | None, typer.Argument(help="A process of the job: its launcher or any of its ranks.", show_default=False)
    ] = None,
    form: Annotated[Format, typer.Option("--format", "-f", help="How to write the report.")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the report to this file.")] = None,
    bundle: Annotated[Path | None, typer.Option(help="Keep everything that was seen in this new folder.")] = None,
    everybody: Annotated[bool, typer.Option("--all-users", help="Look at other users' jobs, too.")] = False,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Show all findings, evidence and fixes.")] = False,
) -> None:
    """Say why a job that runs now hangs: who waits for whom, in which call, at which line.

    Finds the ranks of training jobs on this machine by itself, whatever started them: torchrun, accelerate, deepspeed, srun,
    mpirun, horovodrun, mp.spawn, or processes started by hand.
    """
    from phalanx.attach.jobs import AttachError, find_job, find_jobs

    try:
        job = find_job(pid) if pid is not None else _choose(find_jobs(everybody=everybody))
    except AttachError as error:
        _say(str(error))
        raise typer.Exit(2) from None
    _say(_found(job))
    with ExitStack() as stack:
        folder = bundle or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="phalanx-attach-")))
        try:
            from phalanx.attach.investigation import investigate

            if bundle is not None:
                bundle.mkdir(parents=True, exist_ok=False)
            seen = investigate(job, folder, _say)
        except FileExistsError:
            _say(f"--bundle {bundle}: it exists already; give a new folder")
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        status = _report(seen, form, output, everything)
    if bundle is not None:
        _say(f"kept in {bundle}; again: phalanx diagnose {bundle}")
    raise typer.Exit(status)


def _choose(jobs: list[FoundJob]) -> FoundJob:
    """The only job, or the one that a person picks. Raises AttachError where there is none, or nobody to ask."""
    from phalanx.attach.jobs import AttachError

    if not jobs:
        raise AttachError(
            "no training job of yours runs on this machine. Name a process of it (phalanx attach PID), or see other users' "
            "jobs with --all-users"
        )
    if len(jobs) == 1:
        return jobs[0]
    lines = [f"  {number}. {_found(job)}" for number, job in enumerate(jobs, 1)]
    listed = "several jobs run here:\n" + "\n".join(lines)
    if not sys.stdin.isatty():
        first = jobs[0].ranks[0].process.pid
        raise AttachError(f"{listed}\nsay which one by a process of it, such as: phalanx attach {first}")
    _say(listed)
    while True:
        chosen = int(typer.prompt("which one", type=int, default=1, err=True))
        if 1 <= chosen <= len(jobs):
            return jobs[chosen - 1]


def _found(job: FoundJob) -> str:
    here = [one.identity.rank for one in job.ranks]
    pids = f"pid {job.ranks[0].process.pid}" + (f" to {job.ranks[-1].process.pid}" if len(here) > 1 else "")
    started = f", started by {Path(job.launcher.command[0]).name}" if job.launcher and job.launcher.command else ""
    told = {one.told_by for one in job.ranks} - {"variables"}
    guess = f", ranks numbered by {' and '.join(sorted(told))}" if told else ""
    elsewhere = f"; {name_ranks(job.absent)} not on this machine" if job.absent else ""
    return f"{job.script}: {name_ranks(here)} of {job.size} here ({pids}{started}{guess}){elsewhere}"


def _report(seen: Seen, form: Format, output: Path | None, everything: bool) -> int:
    """Write what was seen; the exit status."""
    from phalanx.attach.state import State, describe

    if seen.stalls:
        from phalanx.cli.diagnosing import Request

        if form is not Format.JSON:
            status = Request((str(seen.bundle),), form, output, everything).run()
            if form is Format.TEXT and output is None:
                _print_groups(seen)
            return status
    from phalanx.diagnose import diagnose_paths
    from phalanx.report import render

    said = "" if seen.stalls else describe(seen.motion, seen.found)
    if form is Format.TEXT:
        sys.stdout.write(f"{said}\n")
        _print_groups(seen)
        return 2 if seen.found.state is State.UNSEEN else 0
    document = json.loads(render(diagnose_paths([str(seen.bundle)]), Format.JSON))
    if not seen.stalls:
        document |= {"verdict": None, "findings": []}
    document["attached"] = {"state": seen.found.state.value, "said": said, "stacks": _groups(seen)}
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")
    return 1 if document["verdict"] else 2 if seen.found.state is State.UNSEEN else 0


def _groups(seen: Seen) -> list[dict[str, Any]]:
    from phalanx.attach.groups import grouped_stacks

    return [
        {
            "ranks": list(group.ranks),
            "doing": group.doing,
            "call": group.call,
            "frames": [f"{frame.function} ({frame.file}:{frame.line})" for frame in group.frames],
        }
        for group in grouped_stacks(seen.motion)
    ]


def _print_groups(seen: Seen) -> None:
    from phalanx.attach.groups import grouped_stacks

    sys.stdout.write("\nwhere the ranks are\n")
    for group in grouped_stacks(seen.motion)[:8]:
        call = f" in {group.call}" if group.call else ""
        where = f" at {group.place.place}" if group.place is not None else ""
        sys.stdout.write(f"  {name_ranks(group.ranks)}: {group.doing}{call}{where}\n")


def _say(text: str) -> None:
    sys.stderr.write(f"phalanx: {text}\n")
    sys.stderr.flush()
