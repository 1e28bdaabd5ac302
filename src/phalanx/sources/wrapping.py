"""Takes off what a collector, an editor or a web page put around every line of a log, before anything is read.

{"log":"step 10\\n","stream":"stderr","time":"…"}   Docker's json-file driver, and other collectors' JSON: the words, behind their time
Nov 17 05:01:02 node1 train[4711]: step 10         journald and syslog, of one program on one host
[2026-11-17 05:01:02]   File "train.py", line 9    a time before all lines (`ts`), also those that no logger writes
    12<tab>step 10                                 `cat -n`, editors
    step 10                                        a block of code in Markdown: all lines are indented alike
> step 10                                          quoted
loss &lt; 0.1, &quot;cuda&quot;                    copied from a page's source
INFO:root:  File "train.py", line 9                anything else before all lines (`prefixes`)
[rank1]:   File "/home/user/tra                    broken at a terminal's width (`folding`)
in.py", line 9

A file is of one of these kinds if its first lines are, and its last, where they can be seen.
"""

from __future__ import annotations

import html
import io
import itertools
import json
import math
import os
import re
import stat
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, BinaryIO, Protocol

from phalanx.sources.folding import Unfolding, width_of
from phalanx.sources.prefixes import prefix_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Unwrap = Callable[[bytes], bytes]
TrueLine = Callable[[int], int]

_HEAD = 16 << 10  # bytes that show how a file is wrapped
_TAIL = 6 << 10  # bytes of its end
_SMALL = 16 << 20  # bytes that are soon read, line by line
_LAYERS = 3
_CUT = 4 << 10  # so many bytes may end within a line, fewer are the whole file
_FEWEST = 3  # lines
_LONGEST = 1 << 20  # a line that is longer is no wrapped one
_SYSLOG = re.compile(
    rb"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:?\d\d)) (?P<host>[\w.-]+) (?P<tag>[\w./@-]+)\[[\w.-]+\]: ?"
)
_STAMP = re.compile(
    rb"\[?(?:(?P<day>\d{4}-\d\d-\d\d)[ T])?(?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,9}))?\]?(?: |$)(?P<margin>  +\S|\[(?:default|rank)\d+\]:)?"
)
_WORDS = ("log", "msg", "message", "textPayload", "MESSAGE")
_TIMES = ("time", "timestamp", "@timestamp", "ts")
_OF_COLLECTORS = frozenset((
    *_WORDS, *_TIMES, "stream", "level", "severity", "levelname", "logger", "name", "source", "insertId", "logName", "logtag",
    "receiveTimestamp", "resource", "labels", "host", "hostname", "container", "container_name", "pod", "namespace",
    "kubernetes", "docker", "tag", "attrs", "file", "offset", "PRIORITY", "_PID", "_HOSTNAME",
))  # fmt: skip
_NUMBER = re.compile(rb" {0,7}(?P<number>\d{1,7})(?:\t|\| ?)")
_INDENT = re.compile(rb"(?: {2,24}|\t{1,3})")
_ENTITY = re.compile(rb"&(?:quot|gt|lt|amp|#39|#x27|nbsp);")
_BARE = re.compile(rb"[<\"]")


def unwrapped(stream: BinaryIO) -> tuple[BinaryIO, TrueLine | None]:
    """The stream without what stands around each of its lines, or itself where nothing does; and, where lines were joined, what tells the number
    that a line had."""
    if not isinstance(stream, io.BufferedReader):
        return stream, None
    head = stream.peek(_HEAD)[:_HEAD]
    tail, size = _tail(stream, len(head))
    stretches = [_whole_lines(head, is_cut=len(head) >= _CUT), *tail]
    true_line = None
    if (width := width_of(stretches)) is not None:
        unfolding = Unfolding(width)
        stream, true_line = io.BufferedReader(ChangedLines(stream, unfolding), 1 << 16), unfolding.true_line
        stretches = [_unfolded(lines, width) for lines in stretches]
    stretches = [[line for line in lines if line.strip()] for lines in stretches]
    for _ in range(_LAYERS):
        unwrap = _unwrap_of(stretches, is_small=size <= _SMALL)
        if unwrap is None:
            break
        stream = io.BufferedReader(ChangedLines(stream, _Unwrapping(unwrap)), 1 << 16)
        stretches = [[rest for line in lines if (rest := unwrap(line)).strip()] for lines in stretches]
    return stream, true_line


def _unwrap_of(stretches: Sequence[Sequence[bytes]], is_small: bool) -> Unwrap | None:
    """What takes off the outermost of what stands around lines of these stretches of a file."""
    if len(stretches[0]) < _FEWEST:
        return None
    for find in (
        _of_json,
        _of_journal,
        _of_stamps,
        _of_numbers,
        _of_quotes,
        _of_indents,
        _of_pages,
    ):
        if (unwrap := find(stretches[0])) is not None:
            return unwrap
    return prefix_of([line for lines in stretches for line in lines], is_small)


def _whole_lines(data: bytes, is_cut: bool) -> list[bytes]:
    shown = data[: data.rindex(b"\n")] if is_cut and b"\n" in data else data
    return [line.rstrip(b"\r") for line in shown.split(b"\n")]


def _tail(stream: io.BufferedReader, after: int) -> tuple[list[list[bytes]], float]:
    """The last lines of a file on disk, behind its first bytes; and its size, which may not be known."""
    if not isinstance(stream.raw, io.FileIO) or not stat.S_ISREG((status := os.fstat(stream.fileno())).st_mode):
        return [], math.inf
    start = max(status.st_size - _TAIL, after)
    if start >= status.st_size:
        return [], status.st_size
    return [_whole_lines(os.pread(stream.fileno(), _TAIL, start), is_cut=False)[1:]], status.st_size


def _unfolded(lines: Sequence[bytes], width: int) -> list[bytes]:
    unfolding = Unfolding(width)
    return (b"".join(unfolding.take(line + b"\n") for line in lines) + unfolding.rest()).split(b"\n")


class _Change(Protocol):
    """What is done to lines, one after the other."""

    def take(self, line: bytes) -> bytes:
        """What is ready now that this line came, with its line feed if it has one."""

    def rest(self) -> bytes:
        """What was kept back."""


class _Unwrapping:
    """Takes off what stands around each line; lines stay lines."""

    def __init__(self, unwrap: Unwrap) -> None:
        self._unwrap = unwrap
        self._is_within = False  # a line too long to be a wrapped one

    def take(self, line: bytes) -> bytes:
        """The line unwrapped."""
        was_within, self._is_within = self._is_within, not line.endswith(b"\n")
        if was_within:
            return line
        body = line.rstrip(b"\r\n")
        return self._unwrap(body) + line[len(body) :] if body.strip() else line

    def rest(self) -> bytes:
        """Nothing is kept back."""
        return b""


class ChangedLines(io.RawIOBase):
    """Presents a stream with its lines changed."""

    def __init__(self, raw: BinaryIO, change: _Change) -> None:
        self._raw = raw
        self._change = change
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._ready:
            lines = self._some_lines()
            made = b"".join(map(self._change.take, lines)) if lines else self._change.rest()
            if not lines and not made:
                return 0
            self._ready = memoryview(made)
        view = memoryview(buffer).cast("B")
        taken = self._ready[: len(view)]
        view[: len(taken)] = taken
        self._ready = self._ready[len(taken) :]
        return len(taken)

    def _some_lines(self) -> list[bytes]:
        lines, size = [], 0
        while size < 1 << 16 and (line := self._raw.readline(_LONGEST)):
            lines.append(line)
            size += len(line)
        return lines


def _of_json(lines: Sequence[bytes]) -> Unwrap | None:
    return _words_of_entry if all(line.startswith(b"{") and _words_of_entry(line) != line for line in lines) else None


def _words_of_entry(line: bytes) -> bytes:
    """What was said, behind its time; the line itself where more is told than a collector tells."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(entry, dict):
        return line
    said = [entry[key] for key in _WORDS if isinstance(entry.get(key), str)]
    times = [entry[key] for key in _TIMES if isinstance(entry.get(key), str)]
    if len(said) != 1 or not entry.keys() <= _OF_COLLECTORS:
        return line
    words = " ".join(said[0].rstrip("\r\n").split("\n"))
    return (f"{times[0]} {words}" if times else words).encode("utf-8", "replace")


def _of_journal(lines: Sequence[bytes]) -> Unwrap | None:
    found = [_SYSLOG.match(line) for line in lines]
    hosts = {match["host"] for match in found if match is not None}
    tags = {match["tag"] for match in found if match is not None}
    # the kernel's words, and those of several programs, are told apart by what stands before them
    if None in found or len(hosts) != 1 or len(tags) != 1 or tags == {b"kernel"}:
        return None
    tag = next(iter(tags))

    def unwrap(line: bytes) -> bytes:
        match = _SYSLOG.match(line)
        return line[match.end() :] if match is not None and match["tag"] == tag else line

    return unwrap


def _of_stamps(lines: Sequence[bytes]) -> Unwrap | None:
    found = [_STAMP.match(line) for line in lines]
    # A logger's lines have times as well, and they stay; but no logger indents what it says behind them, nor knows what torchrun puts before it.
    if None in found or not any(match["margin"] for match in found if match is not None):
        return None

    def unwrap(line: bytes) -> bytes:
        match = _STAMP.match(line)
        if match is None:
            return line
        rest = line[match.start("margin") if match["margin"] else match.end() :]
        if match["day"] is None:
            return rest
        return b"%sT%s.%sZ %s" % (match["day"], match["time"], match["part"] or b"0", rest)

    return unwrap


def _of_numbers(lines: Sequence[bytes]) -> Unwrap | None:
    found = [_NUMBER.match(line) for line in lines]
    numbers = [int(match["number"]) for match in found if match is not None]
    rises = all(0 < later - earlier <= 3 for earlier, later in itertools.pairwise(numbers))
    # right-aligned: what is not may be a table of steps
    if len(numbers) < len(lines) or not rises or not lines[0].startswith(b" "):
        return None

    def unwrap(line: bytes) -> bytes:
        match = _NUMBER.match(line)
        return line[match.end() :] if match is not None else line

    return unwrap


def _of_quotes(lines: Sequence[bytes]) -> Unwrap | None:
    if not all(line.startswith(b"> ") or line == b">" for line in lines):
        return None
    return lambda line: line[2:] if line.startswith(b"> ") else b"" if line == b">" else line


def _of_indents(lines: Sequence[bytes]) -> Unwrap | None:
    match = _INDENT.match(lines[0])
    if match is None or not all(line.startswith(match[0]) for line in lines):
        return None
    margin = match[0]
    return lambda line: line[len(margin) :] if line.startswith(margin) else line


def _of_pages(lines: Sequence[bytes]) -> Unwrap | None:
    entities = sum(1 for line in lines if _ENTITY.search(line))
    if entities < _FEWEST or any(_BARE.search(line) for line in lines):
        return None
    return lambda line: html.unescape(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
