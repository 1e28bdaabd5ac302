"""An agent's own folder on its node: made for one job, gone with it, and if the agent was killed, gone with the next one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from types import TracebackType

_PREFIX = "phalanx-agent-"
_YOUNG = 60.0  # seconds; its agent may be about to lock it


class Scratch:
    """While entered, `folder` is there, private to the user."""

    def __init__(self, where: Path | None = None) -> None:
        self._where = where or Path(tempfile.gettempdir())
        self.folder = Path()
        self._lock = -1

    def __enter__(self) -> Scratch:
        self._sweep()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getuid()}-", dir=self._where))
        self._lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.chdir("/")
        os.close(self._lock)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _sweep(self) -> None:
        """Folders whose agents were killed: nobody holds their lock."""
        for old in self._where.glob(f"{_PREFIX}{os.getuid()}-*"):
            with contextlib.suppress(OSError):
                state = old.lstat()
                is_ours = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
                if not is_ours or time.time() - state.st_mtime < _YOUNG:
                    continue
                held = os.open(old / ".lock", os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(old, ignore_errors=True)
                finally:
                    os.close(held)
