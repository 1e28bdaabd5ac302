"""`phalanx attach`: a verdict on a job that hangs now, whoever started it."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phalanx import private
from phalanx.model.ranks import name_ranks
from phalanx.report import Format

if TYPE_CHECKING:
    from phalanx.attaching.discovery import FoundJob
    from phalanx.attaching.investigation import Seen
    from phalanx.attaching.reach import Reach
    from phalanx.attaching.target import Target

_DOING = {
    "collective": "waiting for other ranks",
    "connect": "waiting for peers to connect",
    "data": "waiting for its data loader",
    "elsewhere": "in its own code",
    "unknown": "no stack",
}
_EXAMPLES = """\
Examples:

    phalanx attach

    phalanx attach 41237

    phalanx attach --hosts a,b

    phalanx attach --slurm 8841

    phalanx attach --ray 02000000

    phalanx attach 41237 --watch --every 60 --notify slack:https://… --metrics 9464

    phalanx attach 41237 --bundle hang/ --format html --output hang.html

Nothing is injected into the job and no signal is sent to it; --dump alone makes ranks do something.

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
    hosts: Annotated[str | None, typer.Option(help="Look on these hosts, over SSH: a,b,user@c.")] = None,
    slurm: Annotated[str | None, typer.Option(help="Look on the nodes of this Slurm job, by srun --overlap.")] = None,
    kubectl: Annotated[str | None, typer.Option(help="Look in the pods with these labels: app=train.")] = None,
    ray: Annotated[str | None, typer.Option(help="Look on the nodes of this Ray job: 02000000, raysubmit_….")] = None,
    each: Annotated[
        str | None, typer.Option(help="With --hosts: the command that reaches a host, such as 'ssh {}'.")
    ] = None,
    python: Annotated[
        str | None, typer.Option("--remote-python", help="An interpreter with phalanx, elsewhere.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and say when it hangs and when it goes on.")] = False,
    every: Annotated[float, typer.Option(help="With --watch: seconds between two looks.")] = 30.0,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            help="With --watch: tell the verdict: https://… (JSON), slack:https://…, cmd:COMMAND, mailto:USER@HOST.",
            show_default=False,
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="With --watch: Prometheus metrics at [HOST:]PORT, or in FILE.prom.", show_default=False),
    ] = None,
    dump: Annotated[
        bool,
        typer.Option(
            "--dump",
            help="Ask ranks with a debug pipe (TORCH_NCCL_DEBUG_INFO_PIPE_FILE) to write their flight recorder now.",
        ),
    ] = False,
) -> None:
    """Say why a job that runs now hangs: who waits for whom, in which call, at which line.

    Finds the ranks of training jobs by itself, whatever started them: torchrun, accelerate, deepspeed, srun, mpirun,
    horovodrun, Ray Train, mp.spawn, or processes started by hand.
    """
    from phalanx.attaching.investigation import investigate
    from phalanx.attaching.jobs import AttachError
    from phalanx.attaching.target import target_here, target_on

    # The judging library takes as long to load as the ranks are looked at; on a loaded machine that is seconds.
    Thread(target=import_module, args=("phalanx.diagnosis",), daemon=True).start()
    try:
        if (notify or metrics) and not watch:
            raise AttachError("--notify and --metrics need --watch")
        reaches = _reaches({"hosts": hosts, "slurm": slurm, "kubectl": kubectl, "ray": ray}, each, python, dump)
        if reaches:
            _say(f"looking on {', '.join(reach.name for reach in reaches[:8])}{' …' if len(reaches) > 8 else ''}")
            target = target_on(reaches, pid, _choose, _say)
        else:
            target = target_here(pid, _choose, everybody=everybody, may_ask=dump)
        _say(_found(target.job))
        if watch:
            status = _stay(target, every, everything, notify or [], metrics)
        else:
            status = _conclude(investigate(target, _say), bundle, form, output, everything)
    except AttachError as error:
        _say(str(error))
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    raise typer.Exit(status)


def _reaches(asked: Mapping[str, str | None], each: str | None, python: str | None, dump: bool) -> list[Reach]:
    """The commands that reach other machines, where any were asked for. Raises AttachError."""
    from phalanx.attaching import reach
    from phalanx.attaching.jobs import AttachError

    given = {way: value for way, value in asked.items() if value is not None}
    if len(given) > 1:
        raise AttachError("give one of --hosts, --slurm, --kubectl and --ray")
    if each is not None and "hosts" not in given:
        raise AttachError("--each needs --hosts, the names that replace {}")
    python = python or ("python3" if "kubectl" in given else None)
    command = reach.module_command(python, "phalanx.attaching.collecting", *(["--dump"] if dump else []))
    if "hosts" in given:
        names = reach.names_in(given["hosts"])
        return reach.by_template(each, names, command) if each is not None else reach.by_ssh(names, command)
    if "slurm" in given:
        return reach.by_slurm(given["slurm"], [*command, "--within", f"SLURM_JOB_ID={given['slurm']}"])
    by = {"kubectl": reach.by_kubectl, "ray": reach.by_ray}
    return next((by[way](value, command) for way, value in given.items()), [])


def _stay(target: Target, every: float, everything: bool, notify: Sequence[str], metrics: str | None) -> int:
    from phalanx.cli.staying import stay

    def show(seen: Seen) -> None:
        _conclude(seen, None, Format.TEXT, None, everything)
        sys.stdout.flush()

    return stay(target, every, _say, show, notify, metrics)


def _conclude(seen: Seen, bundle: Path | None, form: Format, output: Path | None, everything: bool) -> int:
    """Keep what was seen, say it, and return the exit status."""
    from phalanx.attaching.investigation import keep
    from phalanx.attaching.jobs import AttachError

    with ExitStack() as stack:
        folder = bundle or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="phalanx-attach-")))
        if bundle is not None:
            try:
                private.make_folder(bundle, exist_ok=False)
            except OSError as error:
                raise AttachError(f"--bundle {bundle}: {error.strerror}; give a new folder") from None
        keep(seen, folder, _say, for_good=bundle is not None)
        status = _report(seen, folder, form, output, everything, kept=bundle is not None)
    if bundle is not None:
        _say(f"kept in {bundle}; again: phalanx diagnose {bundle}")
    return status


def _choose(jobs: Sequence[FoundJob]) -> FoundJob:
    """The only job, or the one that a person picks. Raises AttachError where there is none, or nobody to ask."""
    from phalanx.attaching.jobs import AttachError

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
    from phalanx.attaching.discovery import script_of

    here = [one.identity.rank for one in job.ranks]
    machines = sorted({one.host for one in job.ranks if one.host})
    if machines:
        where = f" on {', '.join(machines[:8])}{' …' if len(machines) > 8 else ''}"
        elsewhere = f"; {name_ranks(job.absent)} not found there" if job.absent else ""
        return f"{job.script}: {name_ranks(here)} of {job.size}{where}{elsewhere}"
    pids = f"pid {job.ranks[0].process.pid}" + (f" to {job.ranks[-1].process.pid}" if len(here) > 1 else "")
    launcher = job.launcher
    by = (script_of(launcher.command) if launcher.is_python else launcher.program) if launcher is not None else ""
    started = f", started by {by}" if by else ""
    told = {one.told_by for one in job.ranks} - {"variables"}
    guess = f", ranks numbered by {' and '.join(sorted(told))}" if told else ""
    elsewhere = f"; {name_ranks(job.absent)} not on this machine" if job.absent else ""
    return f"{job.script}: {name_ranks(here)} of {job.size} here ({pids}{started}{guess}){elsewhere}"


def _report(seen: Seen, bundle: Path, form: Format, output: Path | None, everything: bool, kept: bool) -> int:
    """Write what was seen; the exit status."""
    from phalanx.attaching.origins import with_origins
    from phalanx.attaching.state import State, describe
    from phalanx.cli.diagnosing import Request
    from phalanx.diagnosis import diagnose_paths
    from phalanx.report import render

    said = "" if seen.hangs else describe(seen.motion, seen.found)
    if form is Format.TEXT and not seen.hangs:
        sys.stdout.write(f"{said}\n")
        _print_groups(seen)
        return 2 if seen.found.state is State.UNSEEN else 0
    report = diagnose_paths([str(bundle)])
    report = report if kept else with_origins(report, seen.evidence)
    if seen.hangs and form is not Format.JSON:
        status = Request((str(bundle),), form, output, everything).conclude(report)
        if form is Format.TEXT and output is None:
            _print_groups(seen)
        return status
    document = json.loads(render(report, Format.JSON))
    if not seen.hangs:
        document |= {"verdict": None, "findings": []}
    document["attached"] = {"state": seen.found.state.value, "said": said, "stacks": _groups(seen)}
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        private.write_text(output, text)
    return 1 if document["verdict"] else 2 if seen.found.state is State.UNSEEN else 0


def _groups(seen: Seen) -> list[dict[str, Any]]:
    from phalanx.attaching.groups import grouped_stacks

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
    from phalanx.attaching.groups import grouped_stacks

    sys.stdout.write("\nwhere the ranks are\n")
    for group in grouped_stacks(seen.motion)[:8]:
        call = f" in {group.call}" if group.call else ""
        where = f" at {group.place.place}" if group.place is not None else ""
        doing = _DOING.get(group.doing, group.doing)
        sys.stdout.write(f"  {name_ranks(group.ranks)}: {doing}{call}{where}\n")


def _say(text: str) -> None:
    sys.stderr.write(f"phalanx: {text}\n")
    sys.stderr.flush()
