"""Takes off what a collector or an editor put around every line of a log, before anything is read.

{"log":"step 10\\n","stream":"stderr","time":"…"}   Docker's json-file driver, and other collectors' JSON: the words, behind their time
    step 10                                        a block of code in Markdown: all lines are indented alike
> step 10                                          quoted
INFO:root:  File "train.py", line 9                anything else before all lines: times, numbers, journald's, a logger's (`prefixes`)

A file is of one of these kinds if its first lines are, and its last, where they can be seen.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, BinaryIO

from phalanx.sources.prefixes import prefix_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Unwrap = Callable[[bytes], bytes]

_HEAD = 16 << 10  # bytes that show how a file is wrapped
_TAIL = 6 << 10  # bytes of its end
_SMALL = 16 << 20  # bytes that are soon read, line by line
_LAYERS = 3
_CUT = 4 << 10  # so many bytes may end within a line, fewer are the whole file
_FEWEST = 3  # lines
_LONGEST = 1 << 20  # a line that is longer is no wrapped one
_WORDS = ("log", "msg", "message", "textPayload", "MESSAGE")
_TIMES = ("time", "timestamp", "@timestamp", "ts")
_OF_COLLECTORS = frozenset((
    *_WORDS, *_TIMES, "stream", "level", "severity", "levelname", "logger", "name", "source", "insertId", "logName", "logtag",
    "receiveTimestamp", "resource", "labels", "host", "hostname", "container", "container_name", "pod", "namespace",
    "kubernetes", "docker", "tag", "attrs", "file", "offset", "PRIORITY", "_PID", "_HOSTNAME",
))  # fmt: skip
_INDENT = re.compile(rb"(?: {2,24}|\t{1,3})")


def unwrapped(stream: BinaryIO) -> BinaryIO:
    """The stream without what stands around each of its lines, or itself where nothing does."""
    if not isinstance(stream, io.BufferedReader):
        return stream
    head = stream.peek(_HEAD)[:_HEAD]
    tail, size = _tail(stream, len(head))
    stretches = [_whole_lines(head, is_cut=len(head) >= _CUT), *tail]
    stretches = [[line for line in lines if line.strip()] for lines in stretches]
    for _ in range(_LAYERS):
        unwrap = _unwrap_of(stretches, is_small=size <= _SMALL)
        if unwrap is None:
            break
        stream = io.BufferedReader(ChangedLines(stream, _Unwrapping(unwrap).take), 1 << 16)
        stretches = [[rest for line in lines if (rest := unwrap(line)).strip()] for lines in stretches]
    return stream


def _unwrap_of(stretches: Sequence[Sequence[bytes]], is_small: bool) -> Unwrap | None:
    """What takes off the outermost of what stands around lines of these stretches of a file."""
    if len(stretches[0]) < _FEWEST:
        return None
    for find in (_of_json, _of_quotes, _of_indents):
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


class ChangedLines(io.RawIOBase):
    """Presents a stream with its lines changed, one after the other; each comes with its line feed, if it has one."""

    def __init__(self, raw: BinaryIO, change: Unwrap) -> None:
        self._raw = raw
        self._change = change
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._ready:
            lines = self._some_lines()
            if not lines:
                return 0
            self._ready = memoryview(b"".join(map(self._change, lines)))
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
