"""Reduces a Markdown report to what programs printed; every other line becomes empty, so that line numbers stay."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import BinaryIO

from phalanx.model.lazy import lazy
from phalanx.sources.shapes import shape_of
from phalanx.sources.text import clean
from phalanx.sources.wrapping import ChangedLines

_DOCUMENTS = (".md", ".markdown", ".rst", ".html")
_HEAD = 8 << 10  # bytes that tell a report from a log
_OPENS = lazy(
    r"\s*(?:> ?)?(?:(?P<fence>`{3,}|~{3,}|`(?=\s*$))|<pre\b[^>]*>(?:\s*<code[^>]*>)?)\s*(?P<language>[\w+#-]*)"
)
_CLOSES = lazy(r"\s*(?:> ?)?(?:`{3,}|~{3,}|`\s*$)|.*</pre>")
_FENCE = lazy(r"(?m)^\s*(?:```|~~~|<pre\b)")
_SOURCE = frozenset(("python", "py", "python3", "c", "cpp", "c++", "cuda", "yaml", "yml", "json", "toml", "dockerfile", "diff", "cmake"))  # fmt: skip
# How lines of programs begin: tracebacks, times, ranks in brackets, levels, exceptions, launchers and the shell.
_PRINTED = lazy(
    r"\s*(?:> ?)?[*_`]{0,2}(?:Traceback \(most|File \"|\[?\d{4}[-/]\d\d[-/]\d\d|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:"
    r"|\[[^\]]*\d[^\]]*\]|\(\w+ pid=\d+|<?(?:[Rr]ank|stderr|stdout)[ :>\d]|[IWEF]\d{4} \d\d:\d\d|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)[: \]]"
    r"|[\w.:]*(?:Error|Exception|Warning|Interrupt)(?:: ?\S|\s*$)|(?:fatal )?error: |\S+:\d+:\d+ (?:\[\d+\] )?NCCL |NCCL (?:WARN|INFO)|\S+\.(?:py|cc?|cpp|cu|h):\d+[: ]"
    r"|terminate called|what\(\):|Fatal Python error|Segmentation fault|Aborted \(|Killed\s*$|Bus error"
    r"|(?:srun|slurmstepd|mpirun|mpiexec|prterun|horovodrun|torchrun|bash|sh|make|CMake|pip|gcc|ld|ninja)(?:\[\d+\])?: |\*\*\* |[$%] \S)"
)
_LABEL = lazy(r"\s*(?:#{1,6} |[-*+] |\d+[.)] |\||!\[|\[[x ]\]|<!--|-->|</?(?:details|summary|br|p|div|h\d)\b)")
_WORD = lazy(r"[\w'’\"(*`-]*[^\W\d_][\w'’\"()*`/-]*[.,;:?!)]*")
_DENSE = lazy(r"[\u3040-\u9fff\uac00-\ud7a3]{3}")  # languages that are written without spaces
# How source code opens, where its fence does not say so.
_CODE = lazy(r"(?:import|from|def|class|async def|with|for) [\w.]+.*|@[\w.]+|#!|# |\"{3}|[a-z_]\w* ?= ?[\w.]+\(")
_SENTENCE = 4  # words
_LONGEST = 400  # characters of a line that are looked at


def program_output(stream: BinaryIO, name: str) -> tuple[BinaryIO, Reduction | None]:
    """The stream as it is, or, of a report, what programs printed in it."""
    if not isinstance(stream, io.BufferedReader):
        return stream, None
    head = stream.peek(_HEAD)[:_HEAD]
    if not _is_report(head.decode("utf-8", "replace"), name):
        return stream, None
    reduction = Reduction(head)
    return io.BufferedReader(ChangedLines(stream, reduction), 1 << 16), reduction


def _is_report(head: str, name: str) -> bool:
    """A document by its name, or a text that opens with words and has a fenced block."""
    if name.lower().endswith(_DOCUMENTS):
        return True
    lines = head.splitlines()
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None or lines[first][0].isspace() or not _is_said(lines[first]):
        return False
    return _FENCE.search(head) is not None


def is_all_words(lines: Sequence[str]) -> bool:
    """Sentences and nothing else. Programs print some that look like this, so it counts only where nothing was recognised."""
    return any(lines) and all(_is_said(line[:_LONGEST]) for line in lines if line.strip())


class Reduction:
    """Empties the lines of a report that no program printed, one after the other.

    A fenced block is kept, and so is a paragraph that is indented; anything else, source code in a fence too, from the
    first line of its paragraph on that begins as programs' lines do.
    """

    def __init__(self, head: bytes) -> None:
        self.head = head  # of the report as it was
        self.kept = 0  # lines
        self._language: str | None = None  # of the fence we are in
        self._keeps = False
        self._is_start = True  # of a paragraph
        self._is_opening = False  # of a fenced block

    def take(self, line: bytes) -> bytes:
        """The line, or an empty one in its place."""
        text = clean(line)[:_LONGEST]
        if self._is_kept(text):
            self.kept += 1
            return line
        return b"\n" if line.endswith(b"\n") else b""

    def rest(self) -> bytes:
        """Nothing is kept back."""
        return b""

    def _is_kept(self, text: str) -> bool:
        was_start, self._is_start = self._is_start, not text.strip()
        if self._language is None and (opens := _OPENS.match(text)):
            if not opens["fence"] or text.count(opens["fence"]) % 2:
                self._language = opens["language"].lower()
                self._keeps = self._language not in _SOURCE
                self._is_opening = True
                return False
        elif self._language is not None and _CLOSES.match(text):
            self._language, self._keeps = None, False
            return False
        if not text.strip():
            self._keeps = self._keeps and self._language is not None
            return False
        if self._is_opening and _CODE.match(text):
            self._keeps = False
        self._is_opening = False
        is_indented = self._language is None and was_start and text.startswith(("    ", "\t"))
        self._keeps = self._keeps or _is_printed(text) or (is_indented and not _is_said(text))
        return self._keeps


def _is_printed(line: str) -> bool:
    return _PRINTED.match(line) is not None or shape_of(line).shows_progress


def _is_said(line: str) -> bool:
    """A sentence, or a heading, an item or a label of Markdown: most of its words are plain words."""
    if _is_printed(line):
        return False
    words = line.split()
    plain = sum(1 for word in words if _WORD.fullmatch(word))
    is_sentence = len(words) >= _SENTENCE and plain >= 0.8 * len(words)
    return is_sentence or _LABEL.match(line) is not None or (not line.isascii() and _DENSE.search(line) is not None)
