"""Turns raw bytes of a log into clean text: no terminal codes, no control characters, bounded length."""

from __future__ import annotations

import re

LONGEST_LINE = 8192  # more than this of one line is never looked at
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(raw: bytes | bytearray) -> str:
    """One line as text: bad bytes replaced, ANSI codes and other control characters taken out."""
    text = raw.decode("utf-8", "replace")
    if not text.isascii() or not text.isprintable():
        text = _CONTROL.sub("", _ANSI.sub("", text))
    return text.rstrip()


def fold(text: str) -> str:
    """White space folded, as prose and joined messages are matched."""
    return " ".join(text.split())
