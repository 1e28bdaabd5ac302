"""Which hosts `phalanx check` is to examine, and each host's own launch command."""

from __future__ import annotations

import os
from collections.abc import Sequence

from phalanx.preflight.convening import CheckError
from phalanx.preflight.host_list import read_hosts
from phalanx.preflight.launch_line import LaunchLine
from phalanx.preflight.node_commands import node_commands
from phalanx.schedulers.slurm import SlurmError, find_jobs


def read_given_hosts(given: str | None) -> tuple[str, ...] | None:
    """What `--hosts` names; None if it is not given. Raises CheckError."""
    if given is None:
        return None
    try:
        return tuple(read_hosts(_of_slurm_job(given[6:]) if given.startswith("slurm:") else given, os.environ))
    except ValueError as error:
        raise CheckError(f"--hosts: {error}") from error


def _of_slurm_job(job: str) -> str:
    """The nodes of a job that runs, as Slurm writes them."""
    try:
        found = find_jobs(job) if job.isdigit() else []
    except SlurmError as error:
        raise ValueError(f"slurm:{job}: {error}") from error
    nodes = found[0].nodes if found else ""
    if nodes in ("", "(null)"):
        state = f"job {job} is {found[0].state} and has no nodes" if found else "give the number of a job that runs"
        raise ValueError(f"slurm:{job}: {state}")
    return nodes


def read_given_commands(given: list[str], hosts: Sequence[str]) -> tuple[dict[str, LaunchLine], list[str]]:
    """By host, its launch command from `--each`; and what is left, which is how to reach hosts. Raises CheckError."""
    try:
        return node_commands(given, hosts)
    except ValueError as error:
        raise CheckError(f"--each: {error}") from error
