"""What was observed: one log line, exception, exit, stall report or stack, and where it stood."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phalanx.model.fact import Fact

_PACKAGES = frozenset(
    {"torch", "tensorflow", "keras", "horovod", "jax", "numpy", "ray", "lightning", "deepspeed", "accelerate"}
)


class EventKind(StrEnum):
    """What sort of observation an event is."""

    LINE = "line"  # a log line that some rule asked for
    EXCEPTION = "exception"  # a Python traceback with its message
    EXIT = "exit"  # a process ended: data has `code` or `signal`
    STALL = "stall"  # a report that ranks wait for others: data may have `missing`, `ready`, `op`, `seq`
    TIMEOUT = "timeout"  # a collective or store gave up waiting: data may have `op`, `seq`, `waited_s`
    STACK = "stack"  # where a living rank stood when it was asked or interrupted
    TRACE = "trace"  # what a comparison of the ranks' collective traces shows: data may have `missing`, the accused
    PROGRESS = "progress"  # a step, an epoch: the job was training


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a Python stack."""

    file: str
    line: int
    function: str
    source: str = ""

    @property
    def path(self) -> str:
        """The file with slashes, whichever system wrote it."""
        return self.file.replace("\\", "/")

    @property
    def place(self) -> str:
        """`train.py:88`, as people say it."""
        return f"{self.path.rsplit('/', 1)[-1]}:{self.line}"

    @property
    def is_user_code(self) -> bool:
        """False for frames of installed packages, the standard library and frozen modules."""
        path = self.path
        if path.startswith("<"):
            return path.startswith(("<ipython", "<stdin"))
        if path.endswith((".pyx", ".pxd", ".pxi")):
            return False  # a compiled package, whose paths are those of its build
        if "/" not in path:  # py-spy shortens library paths to what is imported
            return path.removesuffix(".py") not in sys.stdlib_module_names
        if path.split("/", 1)[0] in _PACKAGES:
            return False
        if "/bin/" in path and not path.endswith(".py"):
            return False  # the scripts that packages install for their commands: torchrun, accelerate, deepspeed
        library = (
            "site-packages/",
            "dist-packages/",
            "/lib/python3",
            "/lib/python2",
            "/envs/",
            "/conda/lib/",
            "/torchinductor_",
            "/__autograph_generated_file",
            "/inside/phalanx_",  # what Phalanx loads into a rank, wherever it is installed
        )
        return not any(mark in path for mark in library)


def same_line(line: int) -> int:
    """For events whose lines were all counted."""
    return line


@dataclass(frozen=True, slots=True)
class Event:
    """One observation, with the rank and host it came from and the file and line it stands at."""

    kind: EventKind
    text: str
    file: str
    line: int
    rank: int | None = None
    host: str | None = None
    source: str = ""
    time: float | None = None
    frames: tuple[Frame, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    fact: Fact | None = None  # what was established, where it is no line of a log: `text` then only shows it
    # The lines around it, made when somebody wants to show them: most events are never shown.
    context: Callable[[], tuple[tuple[int, str], ...]] = tuple
    # Of a large file, lines are only counted for what is shown: `line` is then good to compare, and this makes it real.
    true_line: Callable[[int], int] = same_line

    @property
    def user_frame(self) -> Frame | None:
        """The innermost frame that is the user's own code, if the event has a stack."""
        return next((frame for frame in reversed(self.frames) if frame.is_user_code), None)
