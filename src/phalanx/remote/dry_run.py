"""What would happen, for people: the engine's commands and files, who sits where, and nothing done."""

from __future__ import annotations

import shlex

from phalanx.backends.backend import Plan, Reach
from phalanx.frameworks.launching import seats_of
from phalanx.remote.job import Job


def describe_plan(job: Job, plan: Plan) -> str:
    """The whole plan as text. Secret files are named, not shown; secrets are not in it."""
    lines = [
        f"{job.name}: {job.workers} worker{'s' if job.workers > 1 else ''} of {job.framework} on {job.backend.NAME}"
    ]
    first, seats = 0, seats_of(job.workers, job.spec.roles)
    for node, count in enumerate(plan.layout):
        name = plan.nodes[node] if node < len(plan.nodes) else f"node {node}"
        last = first + count - 1
        tasks = ", ".join(f"{seat.role} {seat.index}" for seat in seats[first : last + 1]) if job.spec.roles else ""
        ranks = f"rank{f's {first} to {last}' if count > 1 else f' {first}'}"
        lines.append(f"  {name}: {ranks}" + (f" ({tasks})" if tasks else ""))
        first += count
    listens = {
        Reach.STREAMS: "the agents talk to the driver over the engine's own streams; no port is opened",
        Reach.LOOPBACK: "the driver listens on this machine alone",
        Reach.NETWORK: "the driver listens on a port of this machine, for holders of the job's token",
    }
    lines.append(f"  {listens[job.backend.REACH]}")
    lines += [f"  {note}" for note in plan.notes]
    for file in plan.files:
        lines.append(f"write {file.path}" + (" (secret, not shown)" if file.is_secret else ""))
        if not file.is_secret:
            lines += [f"    {line}" for line in file.text.splitlines()]
    for command in plan.commands:
        if command.purpose:
            lines.append(f"# {command.purpose}")
        variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(command.environment.items()))
        lines.append(f"run {variables + ' ' if variables else ''}{shlex.join(command.argv)}")
    return "\n".join(lines)
