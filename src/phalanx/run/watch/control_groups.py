"""The control group that limits a process' memory: how often the kernel killed for it, the limit, and the peak. v1 and v2."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """Counters of one group and its ancestors; the smallest limit counts."""

    kills: int
    limit: int | None
    used: int | None
    path: str


def folder_of(pid: int, root: Path = _ROOT) -> Path | None:
    """Where the counters of a process' group stand. In a container its path may be that of the host: then the root."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    tops = {}
    for line in lines:
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if "memory" in controllers.split(","):
            tops[1] = (root / "memory", path)
        elif number == "0":
            tops[2] = (root, path)
    for version in (1, 2):  # where both are mounted, memory belongs to the one that lists it
        if version in tops:
            top, path = tops[version]
            for folder in (top / path.strip("/"), top):
                if (folder / "memory.oom_control").exists() or (folder / "memory.events").exists():
                    return folder
    return None


def read_group(folder: Path, root: Path = _ROOT) -> MemoryGroup | None:
    """Counters of a group; ancestors up to the root may hold the limit."""
    kills = 0
    limit: int | None = None
    used: int | None = None
    for level in (folder, *folder.parents):
        if level in (root, root.parent):
            break
        found = _number(level, "memory.max", "memory.limit_in_bytes")
        if found is not None and found < _UNLIMITED and (limit is None or found < limit):
            limit, used = found, _number(level, "memory.peak", "memory.max_usage_in_bytes", "memory.current")
        kills = max(kills, _kills(level))
    return MemoryGroup(kills, limit, used, str(folder))


def _kills(folder: Path) -> int:
    for name in ("memory.events", "memory.oom_control"):
        try:
            text = (folder / name).read_text(encoding="utf-8")
        except OSError:
            continue
        for line in text.splitlines():
            word, _, number = line.partition(" ")
            if word == "oom_kill" and number.isdigit():
                return int(number)
    return 0


def _number(folder: Path, *names: str) -> int | None:
    for name in names:
        try:
            text = (folder / name).read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if text.isdigit():
            return int(text)
    return None
