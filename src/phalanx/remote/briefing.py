"""What an agent is told to start: the job as its own node sees it, and what is known of all nodes."""

from __future__ import annotations

from typing import Any

from phalanx.remote.gathering import Gathering
from phalanx.remote.job import Job
from phalanx.remote.lines import Line

# As they stand in the job.
_SAME = (
    "framework", "is_call", "command", "is_module", "is_program", "path", "root", "python", "secrets", "devices", "gpus",
    "roles", "virtual_devices", "grace", "inside", "stall_after", "stall_at_most",
)  # fmt: skip


def briefing(
    job: Job, gathering: Gathering, line: Line, attempt: int, ports: list[int], store_port: int | None, run_id: str
) -> dict[str, Any]:
    """The `start` message for one node."""
    return {name: getattr(job, name) for name in _SAME} | {
        "attempt": attempt,
        "node": line.node,
        "layout": gathering.layout,
        "size": job.workers,
        "hosts": gathering.hosts(),
        "ports": ports,
        "store_port": store_port,
        "run_id": run_id,
        "max_restarts": job.retries,
        "environment": {**job.environment, **_of_attempt(job, attempt)},
        "on_stall": "report" if job.on_stall == "abort" else job.on_stall,  # who is to end is decided by the driver
    }


def _of_attempt(job: Job, number: int) -> dict[str, str]:
    """By which code inside a function learns that it is not the first attempt."""
    kept = {"PHALANX_CHECKPOINTS": job.checkpoints} if job.checkpoints else {}
    return {"PHALANX_ATTEMPT": str(number), **kept}
