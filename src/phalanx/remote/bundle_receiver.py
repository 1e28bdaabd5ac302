"""The bundle at the driver: what the nodes send is written down as it comes, each node only where its own ranks are."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from phalanx import private
from phalanx.model import bundle as layout
from phalanx.remote.link import LinkError, Message
from phalanx.remote.packing import PackingError, safe_path
from phalanx.remote.worker import EXCEPTION, RESULT
from phalanx.run.bundle import BundleWriter

# What one node may send in a job; beyond it nothing more of it is kept.
_MOST_BYTES, _MOST_FILES, _MOST_OBSERVATIONS = 32 << 30, 50_000, 200_000
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,80}")


class Quota:
    """How much a node has sent, of each kind."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def takes(self, kind: str, count: int, most: int) -> bool:
        """Count it; whether there is room for it."""
        used = self._used.get(kind, 0) + count
        self._used[kind] = min(used, most + 1)
        return used <= most


class BundleReceiver:
    """Called by the thread of each node; what one node writes no other touches, but for the shared files."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.job = folder / "job"  # not evidence: call, project, results, the engine's files; gone at the end
        self.job.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.writer = BundleWriter(folder, say)
        self._attempt = 0
        self._lock = threading.Lock()
        self._order = 0
        self.bytes = 0
        self._quotas: dict[int, Quota] = {}

    @property
    def attempt(self) -> Path:
        """The folder of the attempt that runs now."""
        return layout.attempt_folder(self.folder, self._attempt)

    @property
    def results(self) -> Path:
        """Results and exceptions of the attempt that runs now."""
        return self.job / f"results{self._attempt}"

    def begin_attempt(self, number: int, size: int) -> None:
        """Make room."""
        self._attempt, self._order = number, 0
        attempt = self.writer.begin_attempt(number, range(size))
        self.results.mkdir(mode=0o700, exist_ok=True)
        for rank in range(size):
            self.writer.open_output(attempt, number, rank)

    def quota(self, ranks: Collection[int]) -> Quota:
        """What a node has sent so far, by its ranks."""
        return self._quotas.setdefault(min(ranks, default=-1), Quota())

    def output(self, ranks: Collection[int], rank: int, data: bytes) -> None:
        """A piece of a rank's output."""
        if not self.quota(ranks).takes("bytes", len(data), _MOST_BYTES):
            return
        self.writer.write_output(self._attempt, rank, data)
        self.bytes += len(data)

    def exit(self, rank: int, facts: Mapping[str, Any]) -> int:
        """How a rank ended; returns its number in the order of all nodes."""
        with self._lock:
            order, self._order = self._order, self._order + 1
        self.writer.write_exit(self.attempt, rank, {**facts, "order": order})
        return order

    def observation(self, ranks: Collection[int], host: str, message: Message) -> None:
        """A line of what a node's watch saw."""
        if not self.quota(ranks).takes("observations", 1, _MOST_OBSERVATIONS):
            return
        data = message.data
        line = {"at": time.time(), "kind": data.get("what"), "ranks": data.get("ranks"), "text": data.get("text")}
        line |= {"host": host, "data": data.get("facts"), "facts": data.get("shown") or []}
        with (
            self._lock,
            contextlib.suppress(OSError),
            open(self.attempt / layout.WATCH, "ab", buffering=0, opener=private.opener) as file,
        ):
            file.write((json.dumps(line, ensure_ascii=False, default=str) + "\n").encode("utf-8", "replace"))

    def file(self, ranks: Collection[int], message: Message) -> None:
        """A piece of a file. Raises LinkError where a node writes what is not its own."""
        target, appends = self._target(str(message.data.get("path", "")), ranks)
        offset = int(message.data.get("offset", 0))
        quota = self.quota(ranks)
        if not quota.takes("files", int(offset == 0), _MOST_FILES) or not quota.takes(
            "bytes", len(message.payload), _MOST_BYTES
        ):
            raise LinkError("it sent more than a node may")
        beside = target.with_name(f".{target.name}.part{min(ranks)}")
        if offset == 0:
            beside.unlink(missing_ok=True)
        elif not beside.exists() or beside.stat().st_size != offset:
            raise LinkError(f"{target.name} came in the wrong order")
        try:
            if message.payload or offset == 0:
                with open(beside, "ab", opener=private.opener) as file:
                    file.write(message.payload)
            if message.data.get("last"):
                self._finish(beside, target, appends)
        except OSError as error:
            raise LinkError(f"{target.name} cannot be written: {error.strerror}") from error

    def _target(self, name: str, ranks: Collection[int]) -> tuple[Path, bool]:
        try:
            parts = safe_path(name).parts
        except PackingError as error:
            raise LinkError(str(error)) from error
        if len(parts) == 2 and parts == (self.attempt.name, layout.SAMPLES):
            return self.attempt / layout.SAMPLES, True
        if len(parts) != 3 or parts[0] != self.attempt.name or not _NAME.fullmatch(parts[2]):
            raise LinkError(f"{name!r}: not a file that a node may write")
        if not parts[1].startswith("rank") or parts[1][4:] not in {str(rank) for rank in ranks}:
            raise LinkError(f"{name!r}: belongs to another node's rank")
        if parts[2] in (RESULT, EXCEPTION):
            folder = self.results / parts[1]
            folder.mkdir(mode=0o700, exist_ok=True)
            return folder / parts[2], False
        if parts[2] in (layout.OUTPUT, layout.EXIT):
            raise LinkError(f"{name!r}: is written by the driver")
        return self.attempt / parts[1] / parts[2], False

    def _finish(self, beside: Path, target: Path, appends: bool) -> None:
        if not appends:
            beside.replace(target)
            return
        with self._lock, open(target, "ab", opener=private.opener) as file:
            file.write(beside.read_bytes())
        beside.unlink()

    def close(self) -> None:
        """The files of the attempt are whole."""
        self.writer.close_outputs()

    def clean(self) -> None:
        """What was only needed while the job ran: call, project, token, the engine's files. Results stay until they are read."""
        for path in self.job.iterdir():
            if path.is_file():
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.job.rmdir()
