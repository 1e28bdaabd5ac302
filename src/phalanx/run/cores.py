"""How many processor cores a job may use, and how many threads that leaves for each rank."""

from __future__ import annotations

import math
import os
from pathlib import Path

_THREADS = "OMP_NUM_THREADS"


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores that this process may run on, and a container's quota if that is less."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroup)
    return max(1, min(allowed, math.ceil(quota))) if quota is not None else allowed


def _quota(cgroup: Path) -> float | None:
    """Cores by the container's limit; version 2 of cgroups, then version 1."""
    try:
        limit, period = (cgroup / "cpu.max").read_text().split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        pass
    try:
        limit_us = int((cgroup / "cpu" / "cpu.cfs_quota_us").read_text())
        period_us = int((cgroup / "cpu" / "cpu.cfs_period_us").read_text())
        return limit_us / period_us if limit_us > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None


def thread_variables(ranks: int, environment: dict[str, str]) -> tuple[dict[str, str], str]:
    """The variable that keeps ranks from competing for the cores, as torchrun sets it, and one clause that says so.

    Nothing is set for TensorFlow: with one thread between operations, a parameter server waits for work queued behind itself.
    """
    if _THREADS in environment:
        return {}, f"{_THREADS}={environment[_THREADS]} (yours)"
    cores = usable_cores()
    threads = max(1, cores // max(ranks, 1))
    shared = f"{cores} core{'s' if cores > 1 else ''}, {ranks} rank{'s' if ranks > 1 else ''}"
    return {_THREADS: str(threads)}, f"{_THREADS}={threads} ({shared})"
