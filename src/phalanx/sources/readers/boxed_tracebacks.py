"""Tracebacks as the library Rich draws them: a box, frames as `file:line in function`, an arrow at the line, the exception below the box.

╭──────────── Traceback (most recent call last) ─────────────╮
│ /home/user/train.py:14 in main                             │
│                                                            │
│   13 │   │   x = batch["image"]                            │
│ ❱ 14 │   │   check(x)                                      │
╰────────────────────────────────────────────────────────────╯
AssertionError: bad batch: 1 value is not finite
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model import Event, EventKind, Frame
from phalanx.model.lazy import lazy
from phalanx.sources.window import Window

TRIGGERS = ("Traceback (most recent call last)",)

_HEADER = lazy(r"^\s*[╭┌+][─━-]+ Traceback \(most recent call last\) [─━-]+[╮┐+]?")
_SIDES = lazy(r"^\s*[│|](?P<body>.*?)\s*[│|]?$")
_END = lazy(r"^\s*[╰└+][─━-]{3,}")
_FRAME = lazy(r"^ (?P<file>\S.*?):(?P<line>\d+) in(?: (?P<function>\S+))?$")
_ARROW = lazy(r"^ [❱>] +(?P<line>\d+) (?P<source>.*)$")
_GUIDES = lazy(r"^(?:[│|] +)+|[│|]\s*$")  # lines of indentation
_FINAL = lazy(r"^(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?$")
_INTERRUPTIONS = ("KeyboardInterrupt", "SignalException")
_LONGEST, _LONGEST_MESSAGE = 2000, 6


def read(window: Window) -> Iterator[Event]:
    """One event, at the line that names the exception."""
    if _HEADER.match(window.text) is None:
        return
    lines = window.following(_LONGEST)
    frames = tuple(_frames(lines))
    final = next(((number, match) for number, text in lines if (match := _FINAL.match(text))), None)
    if final is None:
        return
    number, match = final
    headline = match[0].strip()
    kind = match["type"]
    yield window.event(
        EventKind.STACK if kind.endswith(_INTERRUPTIONS) else EventKind.EXCEPTION,
        "traceback",
        text=" ".join([headline, *_rest(lines, headline)]),
        line=number,
        frames=frames,
        data={"type": kind, "headline": headline, "starts": window.number, "is_nested": False},
    )


def _frames(lines: Iterator[tuple[int, str]]) -> Iterator[Frame]:
    """The frames in the box; reads up to its lower edge. A name that did not fit stands on the next line."""
    begun: tuple[str, int, str] | None = None
    source = ""
    for _, text in lines:
        if _END.match(text):
            break
        sides = _SIDES.match(text)
        body = sides["body"].rstrip() if sides is not None else ""
        if match := _FRAME.match(body):
            if begun is not None:
                yield Frame(*begun, source)
            begun, source = (match["file"], int(match["line"]), match["function"] or ""), ""
        elif begun is not None and not begun[2] and body.strip():
            begun = (begun[0], begun[1], body.strip())
        elif begun is not None and not source and (match := _ARROW.match(body)):
            source = _GUIDES.sub("", match["source"].strip()).strip()
    if begun is not None:
        yield Frame(*begun, source)


def _rest(lines: Iterator[tuple[int, str]], headline: str) -> Iterator[str]:
    """What follows of a message that was broken at the width of the box: lines that are about as long as the first."""
    before = headline
    for _, (_, text) in zip(range(_LONGEST_MESSAGE), lines, strict=False):
        if len(before) < len(headline) - 30 or len(headline) < 60 or not text.strip() or _HEADER.match(text):
            return
        before = text.strip()
        yield before
