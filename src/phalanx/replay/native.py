"""Compiles `words.c`, which takes fingerprints several times as fast as NumPy: for one job, where there is a compiler.

It is made anew for every job, in a folder that only this user can write, and removed with it: a compiled file that is
kept would be one more thing to be trusted. PyTorch and Triton, too, ask for a compiler on the hosts of jobs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from phalanx.replay.record import INSIDE

_SOURCE = INSIDE / "phalanx_record" / "words.c"
_PATIENCE = 20.0  # seconds


class Native:
    """The compiled file of one job; `path` is empty where there is none, and NumPy does the work."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self.path = ""
        compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", "") or "cc", "gcc", "clang"))), None)
        if compiler is None or os.environ.get("PHALANX_NO_COMPILER"):
            return
        self._folder = tempfile.mkdtemp(prefix="phalanx-words-")
        made = Path(self._folder, "words.so")
        command = [compiler, "-O3", "-shared", "-fPIC", "-o", str(made), str(_SOURCE)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return
        if done.returncode == 0 and made.is_file():
            made.chmod(0o700)
            self.path = str(made)

    def close(self) -> None:
        """The ranks have loaded it, or will not."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
