"""Deaths in native code: uncaught C++ exceptions, fatal Python errors, glibc's complaints.

terminate called after throwing an instance of 'c10::Error'
  what():  CUDA error: device-side assert triggered
Fatal Python error: Segmentation fault
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from phalanx.model import Event, EventKind, Frame
from phalanx.sources.readers.stacks import frame_of
from phalanx.sources.window import Window

TRIGGERS = ("terminate called after throwing", "Fatal Python error:", "terminating due to uncaught exception")

_THROWN = re.compile(r"instance of '(?P<type>[^']+)'|uncaught exception of type (?P<other>[\w:]+)")
# The watchdog announced it before: what its process prints while it is taken down explains nothing more.
# `NCCL error: ` is its text for an asynchronous error (before PyTorch 2.1 a std::runtime_error); calls fail with `NCCL error in: `.
ANNOUNCED = re.compile(r"[Ww]atchdog (?:caught|thread terminated)|[Cc]aught collective operation timeout|^NCCL error: ")
# Only the watchdog's thread lets it escape, after it has said why in a line of its own: Python catches it elsewhere.
_WATCHDOGS = "c10::DistBackendError"


def read(window: Window) -> Iterator[Event]:
    """An exception event with the native message, and the Python frames if they are printed."""
    following = list(window.following(60))
    if (thrown := _THROWN.search(window.text)) is not None:
        kind = thrown["type"] or thrown["other"]
        what = next((text.split("what():", 1)[1].strip() for _, text in following[:3] if "what():" in text), "")
        said = what or " ".join(window.below(2))  # the message names a rank within its group, as if another spoke
        if kind != _WATCHDOGS and ANNOUNCED.search(said) is None:
            yield window.event(EventKind.EXCEPTION, "native", text=f"{kind}: {what}".strip(": "), data={"type": kind})
    elif "Fatal Python error:" in window.text:
        message = window.text.split("Fatal Python error:", 1)[1].strip()
        frames = _crashing_frames([text for _, text in following])
        yield window.event(
            EventKind.EXCEPTION, "native", text=f"Fatal Python error: {message}", frames=tuple(frames), data={"type": "Fatal Python error"}
        )  # fmt: skip


def _crashing_frames(lines: Sequence[str]) -> list[Frame]:
    """The stack of the thread that crashed: the one called current, which other threads may stand before."""
    current = next((number for number, text in enumerate(lines) if text.lstrip().startswith("Current thread ")), None)
    frames: list[Frame] = []
    for text in lines[current + 1 :] if current is not None else lines:
        if (frame := frame_of(text)) is not None:
            frames.append(frame)
        elif current is not None:
            break
    frames.reverse()  # printed most recent first
    return frames
