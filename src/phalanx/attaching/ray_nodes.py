"""Runs the collecting command on every node of a Ray cluster, by a task that takes no processor: `python -m phalanx.attaching.ray_nodes`.

One such process serves all nodes, because joining a cluster takes longer than looking. Ray starts a worker of its own for the task;
the job's workers are left alone.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

_ANSWER_S = 50.0
_FAILED = "phalanx-attach-failed "  # as `hosts` reads it; not imported, because this starts on its own


def job_of(ray: Any, wanted: str, address: str) -> str:
    """Ray's number of a job: as it is, or of a submission (`raysubmit_…`), which the dashboard knows. Raises ValueError."""
    known = [str(job["JobID"]) for job in ray._private.state.jobs() if not job["IsDead"]]
    if wanted in known:
        return wanted
    if wanted.startswith("raysubmit_"):
        try:
            told = import_module("ray.job_submission").JobSubmissionClient(address).get_job_info(wanted).job_id
        except (RuntimeError, ConnectionError, ImportError) as error:
            raise ValueError(f"Ray does not tell of {wanted}: {error}") from None
        if told:
            return str(told)
    raise ValueError(f"Ray knows no running job {wanted}; running are {', '.join(known) or 'none'}")


def answers(address: str, wanted: str, command: Sequence[str]) -> tuple[list[str], list[str]]:
    """What the command printed on each living node, and what went wrong on others. Raises ValueError."""
    try:
        ray: Any = import_module("ray")
        scheduling: Any = import_module("ray.util.scheduling_strategies")
    except ImportError:
        raise ValueError("Ray is not installed here: pip install ray, or run this where it is") from None
    try:
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
        own = ray.get_runtime_context().get_job_id()
        number = job_of(ray, wanted, address)
    except (ConnectionError, RuntimeError) as error:
        raise ValueError(f"no Ray cluster at {address}: {error}") from None
    if number == own:
        raise ValueError(f"{wanted} is this very command")
    words = [*command, "--within", f"RAY_JOB_ID={number}"]
    nodes = [str(node["NodeID"]) for node in ray.nodes() if node["Alive"]]
    look = ray.remote(_look_here())
    runs = [
        look.options(
            num_cpus=0, scheduling_strategy=scheduling.NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        ).remote(words, _ANSWER_S)
        for node in nodes
    ]
    done, late = ray.wait(runs, num_returns=len(runs), timeout=_ANSWER_S)
    said, failed = [], [f"a node gave no answer within {_ANSWER_S:.0f} s"] * len(late)
    for run in done:
        try:
            output, wrong = ray.get(run)
        except ray.exceptions.RayError as error:
            output, wrong = "", str(error)
        said.append(output)
        failed += wrong.strip().splitlines()[-1:]
    return said, failed


def _look_here() -> Any:
    """Made here, so that it is sent by value."""

    def look(words: list[str], seconds: float) -> tuple[str, str]:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
        return done.stdout, done.stderr if done.returncode else ""

    return look


def main(arguments: Sequence[str]) -> int:
    """`ADDRESS JOB COMMAND…`; prints what the nodes say."""
    address, wanted, *command = arguments
    try:
        said, failed = answers(address, wanted, command)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write("\n".join(said) + "\n")
    sys.stderr.writelines(f"{_FAILED}{one}\n" for one in failed)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
