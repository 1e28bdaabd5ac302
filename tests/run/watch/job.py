"""Starts a real job of a few ranks under the watch alone, without the supervisor: what the watch's tests need of one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from phalanx.run.observer import Observation, Setup
from phalanx.run.watch import Watch

HEAD = """
import os, sys, time
import torch
import torch.distributed as dist
rank = int(os.environ["RANK"])
"""


class Job:
    """Ranks that run a script, and a watch on them."""

    def __init__(
        self,
        folder: Path,
        script: str,
        size: int,
        *,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.script = folder / "train.py"
        self.script.write_text(script)
        self.attempt = folder / "attempt0"
        self.observations: list[Observation] = []
        self.why: dict[int, Mapping[str, Any]] = {}
        self.codes: dict[int, int] = {}
        self.texts: dict[int, list[str]] = {rank: [] for rank in range(size)}
        self.watch = Watch(Setup(self.attempt, size, "torch", (sys.executable, "train.py"), **options))
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
        self._lock = threading.Lock()
        self._lines: list[tuple[int, bytes]] = []
        self.ranks: dict[int, subprocess.Popen[bytes]] = {}
        for rank in range(size):
            (self.attempt / f"rank{rank}").mkdir(parents=True)
            told = {
                "RANK": str(rank),
                "WORLD_SIZE": str(size),
                "LOCAL_RANK": str(rank),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            }
            given = {
                **os.environ,
                **told,
                "OMP_NUM_THREADS": "1",
                "PYTHONUNBUFFERED": "1",
                **(env or {}),
                **self.watch.environment(rank),
            }
            self.ranks[rank] = subprocess.Popen([sys.executable, str(self.script), *args], env=given, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
            threading.Thread(target=self._read, args=(rank,), daemon=True).start()
        self.watch.started({rank: process.pid for rank, process in self.ranks.items()})

    def _read(self, rank: int) -> None:
        stream = self.ranks[rank].stdout
        assert stream is not None
        for line in stream:
            with self._lock:
                self._lines.append((rank, line.rstrip(b"\n")))

    def tick(self) -> None:
        """What the supervisor does twice a second."""
        with self._lock:
            lines, self._lines = self._lines, []
        for rank, line in lines:
            self.texts[rank].append(line.decode("utf-8", "replace"))
            self.watch.heard(rank, line)
        for rank, process in self.ranks.items():
            if rank not in self.codes and process.poll() is not None:
                time.sleep(0.3)  # its last words
                with self._lock:
                    lines, self._lines = self._lines, []
                for speaker, line in lines:
                    self.texts[speaker].append(line.decode("utf-8", "replace"))
                    self.watch.heard(speaker, line)
                self.codes[rank] = process.returncode
                self.why[rank] = self.watch.ended(rank, process.returncode)
        self.observations += self.watch.tick()

    def until(self, done: Callable[[Job], bool], timeout: float = 100.0) -> bool:
        """Tick until something is true; False if it never was."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.tick()
            if done(self):
                return True
            time.sleep(0.4)
        return False

    def of_kind(self, kind: str) -> list[Observation]:
        """What the watch said of one kind."""
        return [observation for observation in self.observations if observation.kind == kind]

    def said(self, rank: int, words: str) -> bool:
        """Whether a rank printed this."""
        return any(words in line for line in self.texts[rank])

    @property
    def over(self) -> bool:
        """Whether all ranks have ended."""
        return len(self.codes) == len(self.ranks)

    def end(self) -> None:
        """Nothing of it stays."""
        self.watch.close()
        for process in self.ranks.values():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


@contextmanager
def running(folder: Path, script: str, size: int, **options: Any) -> Iterator[Job]:
    """A job for the time of a test."""
    job = Job(folder, script, size, **options)
    try:
        yield job
    finally:
        job.end()
