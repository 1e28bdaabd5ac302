"""Tracebacks as notebooks print them: the exception's name stands in the header, an arrow at the failing line.

ValueError                                Traceback (most recent call last)
<ipython-input-7-5a> in <module>()
      1 with strategy.scope():
----> 2     model.fit(data)
ValueError: steps_per_epoch is missing
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind, Frame
from phalanx.sources.window import Window

TRIGGERS = ("Traceback (most recent call last)",)

_HEADER = re.compile(r"^\s*(?P<type>[A-Za-z_][\w.]*)\s{2,}Traceback \(most recent call last\)")
_FRAME = re.compile(
    r"^(?:File )?(?P<file><ipython-input[^>]*>|Cell In\s?\[\d+\]|[^\s:]+\.pyc?)(?::(?P<line>\d+))?,? in (?P<function><?\w+>?)"
)
_ARROW = re.compile(r"^-+> ?(?P<line>\d+) (?P<source>.*)$")
_LONGEST = 300


def read(window: Window) -> Iterator[Event]:
    """One event, at the line that gives the exception's message; at the header if the text is cut before it."""
    header = _HEADER.match(window.text)
    if header is None:
        return
    name = header["type"]
    frames: list[Frame] = []
    text, line = name, window.number
    for number, body in window.following(_LONGEST):
        if match := _FRAME.match(body):
            frames.append(Frame(match["file"], int(match["line"] or 0), match["function"]))
        elif frames and (match := _ARROW.match(body)):
            last = frames[-1]
            frames[-1] = Frame(last.file, int(match["line"]), last.function, match["source"].strip())
        elif body.startswith((f"{name}:", f"{name.rsplit('.', 1)[-1]}:")):
            text, line = body.strip(), number
            break
    yield window.event(
        EventKind.EXCEPTION,
        "traceback",
        text=text,
        line=line,
        frames=tuple(frames),
        data={"type": name, "headline": text, "starts": window.number},
    )
