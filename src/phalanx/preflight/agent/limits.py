"""Section `limits`: what the process may have: files, locked memory, processes, shared memory, the control group's memory."""

from __future__ import annotations

import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .collect import Setting

_LIMITS = {
    "nofile": "RLIMIT_NOFILE",
    "memlock": "RLIMIT_MEMLOCK",
    "nproc": "RLIMIT_NPROC",
    "core": "RLIMIT_CORE",
    "address": "RLIMIT_AS",
}
_NO_LIMIT_FROM = 1 << 60  # version 1 of control groups writes a huge number where there is no limit


def limits(setting: Setting) -> dict[str, Any]:
    """Limits as [soft, hard], None for unlimited; sizes in bytes."""
    found: dict[str, Any] = {}
    for name, symbol in _LIMITS.items():
        if hasattr(resource, symbol):
            pair = resource.getrlimit(getattr(resource, symbol))
            found[name] = [None if value == resource.RLIM_INFINITY else value for value in pair]
    found["shm"] = space_of("/dev/shm")
    found["memory"] = _memory()
    found["group"] = group_limits()
    found["infiniband"] = _listed("/sys/class/infiniband")
    found["gpus"] = len(_listed("/proc/driver/nvidia/gpus"))
    found["processes"] = sum(name.isdigit() for name in _listed("/proc"))
    return found


def space_of(path: str) -> dict[str, int] | None:
    """Size and free space of the file system; None where there is none."""
    try:
        status = os.statvfs(path)
    except OSError:
        return None
    return {
        "size": status.f_blocks * status.f_frsize,
        "free": status.f_bavail * status.f_frsize,
        "files_free": status.f_favail,
        "files": status.f_files,
        "read_only": int(bool(status.f_flag & os.ST_RDONLY)),
    }


def group_limits() -> dict[str, Any]:
    """Memory, processes and processors that the control group leaves, the tightest on the way up."""
    found: dict[str, Any] = {"memory": None, "memory_used": None, "pids": None, "cpus": None}
    for folder in _group_folders():
        limit = _number(os.path.join(folder, "memory.max")) or _number(os.path.join(folder, "memory.limit_in_bytes"))
        if limit is not None and limit < _NO_LIMIT_FROM and (found["memory"] is None or limit < found["memory"]):
            found["memory"] = limit
            used = _number(os.path.join(folder, "memory.current"))
            found["memory_used"] = used if used is not None else _number(os.path.join(folder, "memory.usage_in_bytes"))
        pids = _number(os.path.join(folder, "pids.max"))
        if pids is not None and (found["pids"] is None or pids < found["pids"]):
            found["pids"] = pids
        quota = _read(os.path.join(folder, "cpu.max")).split()
        if len(quota) == 2 and quota[0].isdigit():
            cpus = int(quota[0]) / int(quota[1])
            found["cpus"] = cpus if found["cpus"] is None else min(cpus, found["cpus"])
    return found


def _group_folders() -> list[str]:
    folders = []
    for line in _read("/proc/self/cgroup").splitlines():
        controllers, path = [*line.split(":", 2), "", "", ""][1:3]
        roots = ["/sys/fs/cgroup"] if not controllers else ["/sys/fs/cgroup/" + name for name in controllers.split(",")]
        for root in roots:
            here = path
            while True:
                folders.append(root + here.rstrip("/"))
                if here in ("", "/"):
                    break
                here = os.path.dirname(here)
    return [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder)]


def _memory() -> dict[str, int]:
    found = {}
    for line in _read("/proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name in ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree"):
            found[name] = int(rest.split()[0]) * 1024
    return found


def _number(path: str) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdigit() else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""


def _listed(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


FACTS = {"limits": limits}
