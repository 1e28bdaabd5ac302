"""Tracebacks without their first line, as people paste them and rotated logs begin.

  File "/home/user/train.py", line 88, in main
    loss.backward()
RuntimeError: All tensor operands to scatter/gather must have the same size
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model import Event, EventKind, Frame
from phalanx.sources.readers.tracebacks import FINAL, FRAME, looks_like_exception
from phalanx.sources.readers.tracebacks import TRIGGERS as HEADS
from phalanx.sources.window import Window

TRIGGERS = ('File "',)

_NEAR = 8  # lines between two frames of one traceback, at most: statements of several lines, and carets below them
_MOST_LINES = 200


def read(window: Window) -> Iterator[Event]:
    """One event, if this is the first frame, nothing but frames follows, and an exception ends them."""
    first = FRAME.match(window.text)
    if first is None or any(HEADS[0] in text or FRAME.match(text) for text in window.preceding(_NEAR)):
        return
    frames = [Frame(first["file"], int(first["line"]), first["function"] or "<module>", "")]
    is_flat = window.text.startswith("File")  # where the indentation was lost, any line may be code
    for number, text in window.following(_MOST_LINES):
        if match := FRAME.match(text):
            frames.append(Frame(match["file"], int(match["line"]), match["function"] or "<module>", ""))
            continue
        if text[:1] in " \t" or not text:
            if text.strip() and not frames[-1].source:
                frames[-1] = _with_source(frames[-1], text)
            continue
        final = FINAL.match(text.strip("*`"))
        if final is not None and looks_like_exception(final["type"]):
            message = (final["message"] or "").strip()
            named = f"{final['type']}: {message}" if message else final["type"]
            data = {"type": final["type"], "headline": named, "starts": window.number, "is_nested": False}
            yield window.event(
                EventKind.EXCEPTION, "traceback", text=named, line=number, frames=tuple(frames), data=data
            )
            return
        if not is_flat or frames[-1].source:
            return
        frames[-1] = _with_source(frames[-1], text)


def _with_source(frame: Frame, text: str) -> Frame:
    return Frame(frame.file, frame.line, frame.function, text.strip())
