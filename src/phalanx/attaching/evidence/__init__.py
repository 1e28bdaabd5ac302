"""What else a hung job leaves within reach: its output, flight-recorder dumps, NCCL RAS, the kernel's log, the GPUs' state.

Each module of this folder is one source: `collect(scene)` yields pieces. They are read on the machine where the ranks run, and land in the
bundle beside the stacks, where the diagnosis reads them as it reads any log or trace.
"""

from __future__ import annotations

import base64
import os
import pkgutil
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from phalanx.attaching.discovery import FoundJob

_TICKS = os.sysconf("SC_CLK_TCK")
_LEAST_QUIET_S = 60.0  # a dump that is older than the silence of the job shows where it no longer is


@dataclass(frozen=True, slots=True)
class Piece:
    """A file for the bundle: of a rank, or of the whole job. What is not text is packed."""

    file: str
    origin: str  # a path or a command, for people
    rank: int | None = None
    text: str = ""
    packed: str = ""

    @property
    def data(self) -> bytes:
        """Its content."""
        return zlib.decompress(base64.b64decode(self.packed)) if self.packed else self.text.encode("utf-8", "replace")


def packed(data: bytes) -> str:
    """Bytes as text that JSON carries."""
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")


@dataclass(frozen=True, slots=True)
class Scene:
    """The ranks of a job on this machine, and what is known before its evidence is read."""

    job: FoundJob
    host: str
    quiet: float | None  # seconds since a rank heard from another one
    may_ask: bool = False  # whether ranks may be asked for a dump through their debug pipe
    notes: list[str] = field(default_factory=list)  # for the user

    @property
    def started(self) -> float:
        """Seconds since the system's start when the first rank began."""
        return min(one.process.start for one in self.job.ranks) / _TICKS

    @property
    def silent_since(self) -> float:
        """The time before which what was written down is out of date."""
        return time.time() - max(self.quiet or 0.0, _LEAST_QUIET_S)

    def path_of(self, pid: int, path: str) -> Path:
        """A path as the process sees it, also in its container."""
        return Path(f"/proc/{pid}/root{path}" if path.startswith("/") else f"/proc/{pid}/cwd/{path}")


def gather(scene: Scene) -> tuple[Piece, ...]:
    """Whatever is there. A source that fails costs what it would have told."""
    found: list[Piece] = []
    for module in pkgutil.iter_modules(__path__):
        try:
            pieces: Iterable[Piece] = import_module(f"{__name__}.{module.name}").collect(scene)
            found.extend(pieces)
        except (OSError, ValueError) as error:
            scene.notes.append(f"{module.name}: {error}")
    return tuple(found)
