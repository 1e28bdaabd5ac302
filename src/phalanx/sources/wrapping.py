"""Takes off what a collector, an editor or a web page put around every line of a log, before anything is read.

{"log":"step 10\\n","stream":"stderr","time":"…"}   Docker's json-file driver: the words, behind their time
Nov 17 05:01:02 node1 train[4711]: step 10         journald and syslog, of one program on one host
    12<tab>step 10                                 `cat -n`, editors
    step 10                                        a block of code in Markdown: all lines are indented alike
> step 10                                          quoted
loss &lt; 0.1, &quot;cuda&quot;                    copied from a page's source

A file is of one of these kinds if its first lines are. Lines stay lines, so that their numbers are those of the file.
"""

from __future__ import annotations

import html
import io
import itertools
import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Unwrap = Callable[[bytes], bytes]

_HEAD = 16 << 10  # bytes that show how a file is wrapped
_CUT = 4 << 10  # so many bytes may end within a line, fewer are the whole file
_FEWEST = 3  # lines
_LONGEST = 1 << 20  # a line that is longer is no wrapped one
_SYSLOG = re.compile(
    rb"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:?\d\d)) (?P<host>[\w.-]+) (?P<tag>[\w./@-]+)\[\d+\]: ?"
)
_NUMBER = re.compile(rb" {0,7}(?P<number>\d{1,7})(?:\t|\| ?)")
_INDENT = re.compile(rb"(?: {2,8}|\t)")
_ENTITY = re.compile(rb"&(?:quot|gt|lt|amp|#39|#x27|nbsp);")
_BARE = re.compile(rb"[<\"]")


def unwrapped(stream: BinaryIO) -> BinaryIO:
    """The stream without what stands around each of its lines; the stream itself where nothing does."""
    if not isinstance(stream, io.BufferedReader):
        return stream
    head = stream.peek(_HEAD)[:_HEAD]
    is_cut = len(head) >= _CUT and b"\n" in head
    shown = head[: head.rindex(b"\n")] if is_cut else head
    lines = [line.rstrip(b"\r") for line in shown.split(b"\n") if line.strip()]
    if len(lines) < _FEWEST:
        return stream
    for find in (_of_docker, _of_journal, _of_numbers, _of_quotes, _of_indents, _of_pages):
        if (unwrap := find(lines)) is not None:
            return io.BufferedReader(_Lines(stream, unwrap), 1 << 16)
    return stream


class _Lines(io.RawIOBase):
    """Presents a stream with each line unwrapped."""

    def __init__(self, raw: BinaryIO, unwrap: Unwrap) -> None:
        self._raw = raw
        self._unwrap = unwrap
        self._ready = memoryview(b"")
        self._is_within = False  # a line too long to be a wrapped one

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if not self._ready:
            self._ready = memoryview(b"".join(self._line(line) for line in self._some_lines()))
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

    def _line(self, line: bytes) -> bytes:
        was_within, self._is_within = self._is_within, not line.endswith(b"\n")
        if was_within:
            return line
        body = line.rstrip(b"\r\n")
        return self._unwrap(body) + line[len(body) :] if body.strip() else line


def _of_docker(lines: Sequence[bytes]) -> Unwrap | None:
    def unwrap(line: bytes) -> bytes:
        try:
            entry = json.loads(line)
            said, time = entry["log"], entry.get("time", "")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return line
        if not isinstance(said, str) or not isinstance(time, str):
            return line
        words = " ".join(said.rstrip("\r\n").split("\n"))
        return (f"{time} {words}" if time else words).encode("utf-8", "replace")

    return unwrap if all(line.startswith(b"{") and unwrap(line) != line for line in lines) else None


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
