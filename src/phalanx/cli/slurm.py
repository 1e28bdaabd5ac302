"""`phalanx slurm epilog|watch`: a post-mortem of every failed Slurm job, beside its output and in its comment; jobs are unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from phalanx.schedulers.slurm import SlurmJob

_EXAMPLES = """\
Examples:

    phalanx slurm epilog 8841

    phalanx slurm watch

    phalanx slurm watch --everybody --every 60

In slurm.conf, for all jobs of a cluster: EpilogSlurmctld=/opt/phalanx/bin/phalanx-epilog (docs/slurm.md).

Exit codes: 0 nothing failed, 1 a post-mortem was written, 2 Slurm could not be asked."""
slurm = typer.Typer(
    help="Write a post-mortem of every failed Slurm job beside its output files, and into its comment.",
    no_args_is_help=True,
    epilog=_EXAMPLES,
)
TEXT, JSON = ".phalanx.txt", ".phalanx.json"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.add_typer(slurm, name="slurm")


@slurm.command(epilog=_EXAMPLES)
def epilog(
    job: Annotated[str | None, typer.Argument(help="The job; SLURM_JOB_ID otherwise.", show_default=False)] = None,
) -> None:
    """Judge one job that has ended. A job that ended well, still runs, or was cancelled is left alone."""
    from phalanx.schedulers.slurm import SlurmError, find_jobs

    wanted = job or os.environ.get("SLURM_JOB_ID")
    if not wanted:
        _say("name a job: phalanx slurm epilog 8841")
        raise typer.Exit(2)
    try:
        found = [one for one in find_jobs(wanted) if one.has_failed or _fails_now(one)]
    except SlurmError as error:
        _say(str(error))
        raise typer.Exit(2) from None
    for one in found:
        _become(one)
        _judge(one)
    raise typer.Exit(1 if found else 0)


@slurm.command(epilog=_EXAMPLES)
def watch(
    every: Annotated[float, typer.Option(help="Seconds between two looks.", min=1.0)] = 30.0,
    everybody: Annotated[bool, typer.Option("--everybody", help="Judge other users' jobs, too (as root).")] = False,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
) -> None:
    """Stay, and judge every job of yours that fails, once."""
    from phalanx.schedulers.slurm import SlurmError, find_jobs

    status = 0
    done: set[str] = set()
    while True:
        try:
            jobs = [one for one in find_jobs() if one.has_failed and one.id not in done]
        except SlurmError as error:
            _say(str(error))
            if once:
                raise typer.Exit(2) from None
            jobs = []
        for one in jobs:
            done.add(one.id)
            if (one.user == os.geteuid() or everybody) and not _place(one, JSON).exists():
                # A process of its own: it takes the job's user, and a fault in one job's output costs that job alone.
                command = [sys.executable, "-m", "phalanx", "slurm", "epilog", one.id]
                status = max(status, int(subprocess.run(command, check=False).returncode == 1))
        if once:
            raise typer.Exit(status)
        time.sleep(every)


def _fails_now(job: SlurmJob) -> bool:
    """In an epilog the job is not over for Slurm yet: its exit code tells."""
    return job.state in ("COMPLETING", "RUNNING") and job.exit != "0:0" and "SLURM_JOB_ID" in os.environ


def _become(job: SlurmJob) -> None:
    """As root, read and write as the job's user: its files may be links to anything."""
    if os.geteuid() == 0 and job.user > 0:
        os.setgroups([])
        os.setgid(max(job.group, 0) or job.user)
        os.setuid(job.user)


def _judge(job: SlurmJob) -> None:
    from phalanx.diagnosis import diagnose_paths
    from phalanx.report import Format, render
    from phalanx.run.verdict import short_text
    from phalanx.schedulers.slurm import bad_nodes, comment

    sick = bad_nodes(job.nodes)
    report: dict[str, Any] = {"verdict": None}
    if job.outputs:
        report = json.loads(render(diagnose_paths([str(path) for path in job.outputs]), Format.JSON))
    report["slurm"] = {"job": job.id, "state": job.state, "exit": job.exit, "nodes": job.nodes, "bad_nodes": sick}
    verdict = report.get("verdict") or {}
    told = (
        short_text(report) or "Its output does not say why."
        if job.outputs
        else "It has no output file that can be read."
    )
    lines = [job.headline, *(f"node {node}" for node in sick), told]
    if job.outputs:
        lines.append(f"more: phalanx diagnose {' '.join(map(str, job.outputs))}")
    text = "\n".join(lines) + "\n"
    try:
        _write(_place(job, TEXT), text)
        _write(_place(job, JSON), json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        _say(f"{error.filename}: {error.strerror}")
    headline = verdict.get("headline") or (f"node {sick[0]}" if sick else job.headline)
    if not comment(job.id, f"phalanx: {headline}"):
        _say(f"Slurm took no comment for job {job.id}: finished jobs take one from the accounting (slurmdbd) alone")
    sys.stdout.write(text)


def _place(job: SlurmJob, suffix: str) -> Path:
    """Beside the output: `slurm-41.out.phalanx.txt`."""
    beside = job.outputs[0] if job.outputs else Path(job.stdout if job.stdout.startswith("/") else f"slurm-{job.id}")
    return beside.with_name(beside.name + suffix)


def _write(path: Path, text: str) -> None:
    """Anew, never through a link."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def _say(text: str) -> None:
    sys.stderr.write(f"phalanx: {text}\n")
