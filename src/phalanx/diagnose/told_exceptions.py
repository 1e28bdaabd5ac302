"""Exceptions of which a person tells: quoted without their tracebacks, or only named in the title."""

from __future__ import annotations

import re
from collections.abc import Sequence

from phalanx.model import Event, EventKind

EXCEPTION = re.compile(r"(?P<type>\b[A-Za-z_][\w.]{0,120}(?:Error|Exception)):(?: .*|$)")
_EXCEPTION_NAME = re.compile(r"\b[A-Z][A-Za-z]+(?:Error|Exception)\b")


def exception_in(file: str, messages: Sequence[str]) -> Event | None:
    """The first exception that is named among the messages, as it would stand at the end of a traceback."""
    for message in messages:
        if match := EXCEPTION.search(message):
            kind = match["type"].rsplit(".", 1)[-1]
            return Event(EventKind.EXCEPTION, match[0], file, 0, source="prose", data={"type": kind})
    return None


def exception_named(file: str, title: str) -> Event | None:
    """An exception of which the title has no more than the name: "fails at startup due to FileExistsError"."""
    match = _EXCEPTION_NAME.search(title)
    return match and Event(EventKind.EXCEPTION, match[0], file, 0, source="prose", data={"type": match[0]})
