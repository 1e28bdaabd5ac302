"""Failures of pip, CMake and compilers: the first error that a build log names.

CMake Error at CMakeLists.txt:12 (message):
src/ops.cc:40:10: fatal error: mpi.h: No such file or directory
ERROR: Failed building wheel for horovod
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.sources.window import Window

TRIGGERS = (
    "ERROR: Failed building wheel",
    "ERROR: Could not build wheels",
    "ERROR: No matching distribution found",
    "ERROR: ResolutionImpossible",
    "subprocess-exited-with-error",
    "error: command '",
    "CMake Error",
    "fatal error: ",
    "ninja: build stopped",
    'Command "python setup.py egg_info" failed',
)

_COMPILER = re.compile(r"^\S+:\d+(?::\d+)?: fatal error: .+")


def read(window: Window) -> Iterator[Event]:
    """An exception event of type `build`."""
    text = window.text.strip()
    if "fatal error: " in text and not _COMPILER.match(text):
        return
    if text.startswith("CMake Error"):
        detail = next((line.strip() for _, line in window.following(4) if line.strip()), "")
        text = f"{text} {detail}".strip()
    yield window.event(EventKind.EXCEPTION, "build", text=text, data={"type": "build"})
