"""Turns raw bytes of a log into clean text: no terminal codes, no control characters, bounded length."""

from __future__ import annotations

import re

LONGEST_LINE = 8192  # more than this of one line is never looked at
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ENDLESS = 1000
NUMBER = re.compile(r"\d+")
_VARIES = re.compile(r"0x[0-9a-f]+|\d+(?:[.,:]\d+)*(?:e[+-]?\d+)?", re.I)
# Numbers of some thousand digits cannot be read, and expressions take the square of a word's length. No program's word is as long.
_ENDLESS_WORD = re.compile(r"(?<!\w)(\w{100})\w{900,}")


def clean(raw: bytes | bytearray) -> str:
    """One line as text: bad bytes replaced, ANSI codes and other control characters taken out."""
    text = raw.decode("utf-8", "replace")
    if not text.isascii() or not text.isprintable():
        text = _CONTROL.sub("", _ANSI.sub("", text))
    return without_endless_words(text).rstrip()


def without_endless_words(text: str) -> str:
    """The text with only the beginning of words of a thousand characters and more."""
    if len(text) < _ENDLESS or max(map(len, text.split()), default=0) < _ENDLESS:  # said at once of most texts
        return text
    return _ENDLESS_WORD.sub(r"\1…", text)


def without_numbers(text: str) -> str:
    """What stays of a message when another rank or another step says the same: numbers and addresses become `#`."""
    return _VARIES.sub("#", text)


def clean_text(text: str) -> str:
    """Several lines as text, from a record or a person: what `clean` takes out of a line is taken out."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return without_endless_words(_CONTROL.sub("", _ANSI.sub("", lines)))


def shown_name(name: str) -> str:
    """A file's name as it may be shown: without what a terminal would act on, and without bytes that are no text."""
    if name.isascii() and name.isprintable():
        return name
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return _CONTROL.sub("?", _ANSI.sub("?", text)).replace("\n", "?").replace("\t", "?")
