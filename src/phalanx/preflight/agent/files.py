"""Sections `paths` and `code`: space and writability of the paths given, and a fingerprint of the job's own code."""

from __future__ import annotations

import hashlib
import os
import tempfile

from . import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .collect import Setting

_MOST_FILES = 5000
_MOST_BYTES = 64 << 20
_SKIPPED = frozenset(
    ["__pycache__", ".git", "node_modules", ".venv", "venv", "site-packages", ".mypy_cache", ".ruff_cache"]
)


def paths(setting: Setting) -> dict[str, Any]:
    """For every path: whether it is there, can be read and written (tried), its space and its file system."""
    found = {}
    for given in map(str, setting.listed("paths")):
        path = os.path.expanduser(given)
        folder = path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
        found[given] = {
            "exists": os.path.exists(path),
            "folder": os.path.isdir(path),
            "readable": os.access(path, os.R_OK),
            "writable": _can_write(folder) if os.path.isdir(folder) else False,
            "space": limits.space_of(folder),
            "kind": _file_system(folder),
        }
    return found


def _can_write(folder: str) -> bool:
    """Tried for real: permissions do not tell of read-only mounts and quotas."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".phalanx-check-") as trial:
            trial.write(b"x")
            trial.flush()
        return True
    except OSError:
        return False


def _file_system(folder: str) -> str:
    """`nfs4 server:/export`, of the mount that holds the folder."""
    best = ("", "")
    here = os.path.realpath(folder)
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            for line in file:
                device, place, kind = line.split()[:3]
                inside = here == place or here.startswith(place.rstrip("/") + "/")
                if inside and len(place) >= len(best[0]):
                    best = (place, "%s %s" % (kind, device))
    except (OSError, ValueError):
        pass
    return best[1]


def code(setting: Setting) -> dict[str, Any]:
    """Digest by file of the script, or of the Python files below a folder."""
    found: dict[str, Any] = {}
    for given in map(str, setting.listed("code")):
        path = os.path.expanduser(given)
        if os.path.isfile(path):
            found[given] = {"": _digest(path)}
        elif os.path.isdir(path):
            found[given] = _below(path)
        else:
            found[given] = None
    return found


def _below(folder: str) -> dict[str, str]:
    digests: dict[str, str] = {}
    left = _MOST_BYTES
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            if not name.endswith((".py", ".yaml", ".yml", ".toml", ".json", ".sh")):
                continue
            path = os.path.join(here, name)
            try:
                left -= os.path.getsize(path)
            except OSError:
                continue
            if left < 0 or len(digests) >= _MOST_FILES:
                return digests
            digests[os.path.relpath(path, folder)] = _digest(path)
    return digests


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(_MOST_BYTES)).hexdigest()[:16]
    except OSError as error:
        return "unreadable: %s" % error.strerror


FACTS = {"paths": paths, "code": code}
