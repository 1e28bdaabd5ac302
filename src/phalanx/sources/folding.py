"""Joins lines again that a terminal broke at its width, as `script`, tmux and PowerShell write them down.

[rank1]:   File "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py", li      80 characters
ne 979, in _engine_run_backward

A file is folded if no line is longer than some width, several are exactly as long, and most of what comes after these goes on in the middle
of something and not as lines begin here; text that is broken between words has as many lines that are a little shorter. The numbers of lines stay those of the file: whoever shows one asks `true_line`.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain, compress, pairwise

from phalanx.sources.shapes import FOLDED

_NARROWEST, _WIDEST = 60, 400  # columns
_USUAL = frozenset((80, 100, 120, 132, 160, 200, 240))  # the widths of terminals: there one long line is enough
_FEWEST = 4  # lines of the full width, else
_ALMOST = 6  # columns: text that is broken between words has many lines that are so much shorter, and fewer
_TORN = 0.4  # of the breaks of a usual width: most are in the middle of something
_MOST_BEGINNINGS = 0.3  # of the breaks behind which a line seems to begin
_LONGEST = 64  # lines that are joined to one
_OPENING = 6  # characters by which beginnings of lines are compared
_FRAME = re.compile(rb"File \"[^\"\n]{1,400}\", line \d+, in [\w<]")
_WORDS = re.compile(rb"[\w./\"']")
_BEGINS = re.compile(
    rb"\s*(?:Traceback \(|File \"|\[(?:rank|default)\d|\[\d+(?:,\d+)?\]<std|\[?\d{4}-\d\d-\d\d|[IWEF]\d{4} \d\d:|\[?(?:INFO|WARN|ERROR|DEBUG|CRITICAL)\w*\b|"
    rb"\d\d:\d\d:\d\d|(?:[Ss]tep|[Ee]poch|[Ii]ter\w*)\b|={6}|-{6})"
)
_PROGRAMS = re.compile(rb"%s|(?:\[[^\]]{1,20}\]:? )?[\w.]{1,60}(?:Error|Exception|Warning)?: " % _BEGINS.pattern)

_Pair = tuple[bytes, bytes]  # a line and the one that follows it


def width_of(stretches: Sequence[Sequence[bytes]]) -> int | None:
    """The width at which a file was folded, told by stretches of it; None if it was not."""
    if not all(map(bytes.isascii, chain.from_iterable(stretches))):  # a terminal counts characters
        stretches = [[line.decode("utf-8", "replace").encode("ascii", "replace") for line in one] for one in stretches]
    width = max(map(len, chain.from_iterable(stretches)), default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return None
    breaks = [
        pair
        for one in stretches
        for pair in compress(pairwise(one), map(width.__eq__, map(len, one)))
        if pair[1].strip()
    ]
    if sum(line[:_OPENING] == following[:_OPENING] for line, following in breaks) > _MOST_BEGINNINGS * len(breaks):
        return None  # the same line again and again, as training prints it
    if any(_is_torn_frame(*pair) for pair in breaks):
        return width
    is_folded = (
        _are_torn(breaks, width) and _stands_out(stretches, breaks, width) and _goes_on(stretches, breaks, width)
    )
    return width if is_folded else None


def _are_torn(breaks: Sequence[_Pair], width: int) -> bool:
    """Enough of the breaks are in the middle of something: all of them where the width is unusual or there are few."""
    torn = sum(_is_torn(*pair) for pair in breaks)
    is_many = len(breaks) >= _FEWEST
    if not torn or torn < (_TORN if width in _USUAL and is_many else 1.0) * len(breaks):
        return False
    if width not in _USUAL:
        return is_many and any(_is_at_space(*pair) for pair in breaks)
    return is_many or all(_PROGRAMS.match(line) for line, _ in breaks)


def _stands_out(stretches: Sequence[Sequence[bytes]], breaks: Sequence[_Pair], width: int) -> bool:
    """Lines that are a little shorter are not broken as often: text that is broken between words has as many of them."""
    shorter = (pair for one in stretches for pair in pairwise(one) if width - _ALMOST <= len(pair[0]) < width - 1)
    between = sum(1 for pair in shorter if _is_torn(*pair) and not _BEGINS.match(pair[1]))
    return sum(_is_torn(*pair) for pair in breaks) > 2 * between


def _goes_on(stretches: Sequence[Sequence[bytes]], breaks: Sequence[_Pair], width: int) -> bool:
    """Few lines behind a break begin as lines begin here."""
    whole = [line for one in stretches for before, line in pairwise((b"", *one)) if len(before) != width]
    openings = {_opening(line) for line in whole}
    begun = sum(1 for _, following in breaks if _BEGINS.match(following) or _opening(following) in openings)
    return begun <= _MOST_BEGINNINGS * len(breaks)


def _is_torn(line: bytes, following: bytes) -> bool:
    """A word or a quotation goes on, or a sentence after a space."""
    if _WORDS.match(line[-1:]) and _WORDS.match(following):
        return True
    return _is_at_space(line, following) or line.count(b'"') % 2 == 1 == following.count(b'"') % 2


def _is_at_space(line: bytes, following: bytes) -> bool:
    """One space at the break: whoever breaks lines between words leaves none."""
    return line.endswith(b" ") != (following[:1] == b" " and following[1:2] != b" ")


def _is_torn_frame(line: bytes, following: bytes) -> bool:
    return (
        _FRAME.search(line) is None and _FRAME.search(line + following) is not None and _FRAME.search(following) is None
    )


def _length(line: bytes) -> int:
    """In characters, as a terminal counts them."""
    return len(line) if line.isascii() else len(line.decode("utf-8", "replace"))


def _opening(line: bytes) -> bytes:
    return line[:_OPENING].translate(FOLDED)


class Unfolding:
    """Takes the lines of a folded file, one after the other, and gives back whole ones."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._parts: list[bytes] = []
        self._made = 1  # the number of the line that is being made
        self._joined = array(
            "Q"
        )  # for each line that was joined to the one before it: the number of the latter as it is now

    def take(self, line: bytes) -> bytes:
        """What is whole now that this line came; it ends with its line feed, if it has one."""
        body = line.rstrip(b"\r\n")
        ready = b""
        if self._parts and not self._goes_on(body):
            ready = self.rest()
        elif self._parts:
            self._joined.append(self._made)
        if len(body) < len(line) and _length(body) == self._width:
            self._parts.append(body)
            return ready
        whole, self._parts = b"".join((*self._parts, line)), []
        self._made += len(body) < len(line)
        return ready + whole

    def rest(self) -> bytes:
        """What was kept back."""
        if not self._parts:
            return b""
        ready, self._parts = b"".join((*self._parts, b"\n")), []
        self._made += 1
        return ready

    def _goes_on(self, body: bytes) -> bool:
        return bool(body.strip()) and len(self._parts) < _LONGEST and _BEGINS.match(body) is None

    def true_line(self, line: int) -> int:
        """The number in the file of a line as it is now."""
        return line + bisect_right(self._joined, line - 1)
