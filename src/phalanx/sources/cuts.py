"""Tells that a log is not whole: it begins in the middle of a traceback, or says itself that lines were left out.

    main()                                              the first line of `tail -n 60`
  File "/home/user/train.py", line 58, in main
… [... 812 lines omitted ...]   <snip>   --- 40 lines skipped ---
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from phalanx.sources.dialects import Dialect
from phalanx.sources.readers.tracebacks import FINAL, FRAME, TRIGGERS, looks_like_exception

_FIRST = 4  # lines: a frame, its line of code and the marks below it
_NATIVE = ("terminate called after", "  what():", "frame #")  # of an abort, whose reason stood above
_MARKS = (b"skipped", b"omitted", b"truncated", b"snip", b"elided", b"removed", b"left out")
_GAP = re.compile(
    rb"(?im)^[^\w\n]{0,12}(?:(?:%(n)s)[^\w\n]{1,3}(?:%(how)s)\b|(?:%(how)s)\b[^\w\n]{1,3}(?:%(n)s)|snip(?:ped)?)[^\w\n]{0,12}\r?$"
    % {b"n": rb"\d{1,9} (?:more )?(?:lines?|rows|bytes|characters|frames)(?: were| are)?", b"how": rb"skipped|omitted|truncated|elided|removed|left out|snip(?:ped)?"}
)  # fmt: skip


def begins_within(lines: Sequence[str], dialect: Dialect) -> bool:
    """Whether these first lines of a file are the rest of a traceback."""
    texts = [dialect.read(line)[1] for line in islice((line for line in lines if line.strip()), _FIRST)]
    if len(texts) < _FIRST:
        return False
    if texts[0].startswith(_NATIVE):
        return True
    for text in texts:
        if TRIGGERS[0] in text:
            return False
        if FRAME.match(text):
            return text[:1].isspace()
        final = FINAL.match(text)
        if final is not None and texts[0][:1].isspace() and looks_like_exception(final["type"]):
            return not final["type"].endswith("Warning")
    return False


def leaves_out(sample: bytes) -> bool:
    """Whether it says that lines were left out."""
    return any(mark in sample for mark in _MARKS) and _GAP.search(sample) is not None
