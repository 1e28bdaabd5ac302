"""An exception's message alone, as the last words of a log: the traceback was cut off, or a handler printed no more.

step 40 loss 0.3113
RuntimeError: No Adasum operation enabled
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.model.lazy import lazy
from phalanx.sources.readers.tracebacks import FINAL, FRAME, IGNORED, looks_like_exception
from phalanx.sources.readers.tracebacks import TRIGGERS as HEADS
from phalanx.sources.shapes import shape_of
from phalanx.sources.window import Window

TRIGGERS = ("Error: ", "Exception: ")

_BOX_END = lazy(r"^\s*[╰└+][─━-]{10,}")
_END = 8 << 10  # bytes: more is no end
_NEAR = 8  # lines above, in which a frame would make it a traceback's
_DRAWN = lazy(
    r"\s*(?:[│└╰╭]|\+-{3,}|\| )"
)  # the box that Rich draws around frames, the values that Loguru hangs below them
_FEW = 3  # lines that may follow: the rest of the message, or what a shell says


def read(window: Window) -> Iterator[Event]:
    """One event, if hardly anything follows, and no traceback stands above."""
    if not window.piece.is_last or window.hit.stop < len(window.piece.data) - _END:
        return
    final = FINAL.match(window.text)
    if final is None or not looks_like_exception(final["type"]) or final["type"].endswith("Warning"):
        return
    above = window.preceding(_NEAR)
    if any(HEADS[0] in text or FRAME.match(text) or _DRAWN.match(text) for text in above):
        return
    if any(_BOX_END.match(text) or IGNORED.match(text) for text in window.preceding(1)):
        return  # a boxed traceback's own last line, or what an interpreter on its way out passes over
    rest = [text for _, text in window.following() if text.strip()]
    if len(rest) > _FEW or any(not shape_of(text).is_plain or HEADS[0] in text for text in rest):
        return
    data = {"type": final["type"], "headline": window.text, "starts": window.number, "is_nested": False}
    yield window.event(EventKind.EXCEPTION, "traceback", data=data)
