"""Where the ranks of a job meet without a launcher of ours: the bundle of the job that runs now, below a folder that all of them see.

`.meet/DIGEST` names the newest bundle of a job's key. Keys come again (torchrun's default port, a job started twice), so a rank joins
that bundle only if somebody still keeps it, and if the rank's own place in it is free. On several nodes the folder may be a shared one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from phalanx import __version__, private
from phalanx.embedded.identity import Place
from phalanx.model import bundle as layout

_FRESH_S = 60.0  # since somebody last wrote that the job runs
_LOCK_S = 10.0
NODES = "nodes"
LISTENS, CALLS = "{}.listens", "{}.calls"  # in it: where this host can be called; whom it shall call


def base_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """PHALANX_DIR, else `phalanx-runs` here, else one below the folder for temporary files. Raises OSError."""
    given = variables.get("PHALANX_DIR")
    wishes = [Path(given)] if given else [Path.cwd() / "phalanx-runs"]
    wishes.append(Path(tempfile.gettempdir(), f"phalanx-{os.geteuid()}"))
    for wish in wishes:
        with contextlib.suppress(OSError):
            if not wish.is_dir():
                private.make_folder(wish)
            if os.access(wish, os.W_OK | os.X_OK):
                return wish.absolute()
    raise OSError(f"no folder to write to: {', '.join(map(str, wishes))}")


def join(base: Path, place: Place, name: str) -> tuple[Path, int]:
    """The bundle of this rank's job, with a place for the rank in it, and the time at which the bundle was made. Raises OSError."""
    meet = base / ".meet"
    private.make_folder(meet)
    pointer = meet / place.digest
    with _locked(meet / f"{place.digest}.lock") as now:
        folder = _current(base, pointer)
        if folder is None or not _is_open(folder, place, now):
            folder = _make(base, place, name)
            private.write_text(pointer, folder.name)
        private.make_folder(layout.rank_folder(layout.attempt_folder(folder, 0), place.rank), exist_ok=False)
    return folder, 0


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[float]:
    """One rank at a time, on one node in any case; gives the time by the clock of whoever keeps the files."""
    with open(path, "ab", opener=private.opener) as file:
        until = time.monotonic() + _LOCK_S
        while time.monotonic() < until:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:
                break  # a file system without locks: folders are made atomically in any case
        os.utime(file.fileno())
        yield os.fstat(file.fileno()).st_mtime


def _current(base: Path, pointer: Path) -> Path | None:
    try:
        name = pointer.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return base / name if name and "/" not in name and (base / name).is_dir() else None


def _is_open(folder: Path, place: Place, now: float) -> bool:
    """Whether the job of that bundle still runs and has no such rank yet."""
    attempt = layout.attempt_folder(folder, 0)
    if layout.rank_folder(attempt, place.rank).exists():
        return False
    try:
        manifest = json.loads((folder / layout.MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    beats = [path.stat().st_mtime for path in (folder / NODES).glob("*.json")]
    newest = max([*beats, (folder / layout.MANIFEST).stat().st_mtime])
    return manifest.get("state") == "running" and now - newest < _FRESH_S and not _has_dead_rank(attempt)


def _has_dead_rank(attempt: Path) -> bool:
    """A rank of this node that is gone: the bundle is of a job that ended without a word."""
    for file in attempt.glob(f"rank*/{layout.PROCESS}"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            told = json.loads(file.read_text(encoding="utf-8"))
            if told["host"] == os.uname().nodename and not Path(f"/proc/{told['pid']}").exists():
                return True
    return False


def _make(base: Path, place: Place, name: str) -> Path:
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)[:60] or "job"
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for again in range(1, 1000):
        folder = base / (f"{stamp}-{safe}" + (f"-{again}" if again > 1 else ""))
        try:
            private.make_folder(folder, exist_ok=False)
        except FileExistsError:
            continue
        break
    private.make_folder(folder / NODES)
    private.make_folder(layout.attempt_folder(folder, 0))
    manifest: dict[str, Any] = {
        "schema": layout.SCHEMA,
        "phalanx": __version__,
        "name": name,
        "size": place.size,
        "embedded": True,
        "id": secrets.token_hex(8),  # nodes that share no folder have each a bundle of their own
        "key": place.digest,
        "host": os.uname().nodename,
        "folder": str(Path.cwd()),
        "started": time.time(),
        "state": "running",
        "attempts": [{"attempt": 0, "started": time.time()}],
    }
    private.write_text(folder / layout.MANIFEST, json.dumps(manifest, indent=1) + "\n")
    return folder
