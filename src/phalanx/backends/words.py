"""What an engine or an agent has printed, fit to be shown: its end, without anything that steers a terminal."""

from __future__ import annotations

import re
from pathlib import Path

_SHOWN = 4000  # bytes that are worth keeping
_UNPRINTABLE = re.compile(r"[^\x09\x0a\x20-\x7e\u00a0-\uffff]")


def last_words(path: Path) -> str:
    """The end of a file; nothing where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _SHOWN))
            return printable(file.read().decode("utf-8", "replace")).strip()
    except OSError:
        return ""


def printable(text: str) -> str:
    """The text's end, without what steers a terminal."""
    return _UNPRINTABLE.sub("?", text[-_SHOWN:].replace("\r", ""))
