"""Finds the error messages in an issue's text and makes one template of those that differ in numbers, names and places only.

[rank3]: ValueError: expected 4 ranks, got 3 in /home/me/a.py   →   ValueError: expected <number> ranks, got <number> in <path>
"""

import re
from dataclasses import dataclass

# The launcher's prefix, a time stamp, a quotation mark: not the message's own.
_PREFIX = re.compile(
    r"^(?:\s|>|\[[^\]]{0,40}\]:?|\d+: |\d{4}-\d\d-\d\d[T ][\d:.,]+Z?|[EFW]\d{4} [\d:.]+ +\d+ |\([\w ]+ pid=\d+[^)]*\))+"
)
_MESSAGE = re.compile(
    r"^(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Timeout|Failure)\b(?:: .+)?"
    r"|terminate called .+|.*\bNCCL (?:WARN|ERROR)\b.+|Fatal Python error: .+|RuntimeError.+|.*\bcheck failed: .+|.*(?:Segmentation fault|Bus error|core dumped).*"
    r"|(?:fatal|error|FAILED|ERROR)\b ?[:-] ?.+|.*\b(?:CUDA|HIP|cuDNN|cuBLAS|NCCL|MPI|UCX|Gloo) error\b.+)$",
    re.IGNORECASE,
)
_HOLES = (
    (re.compile(r"https?://\S+"), "<address>"),
    (re.compile(r"0x[0-9a-fA-F]+"), "<pointer>"),
    (re.compile(r"(?:[A-Za-z]:)?(?:/[\w.+-]+){2,}/?"), "<path>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<host>"),
    (re.compile(r"'[^']{1,80}'|\"[^\"]{1,80}\"|`[^`]{1,80}`"), "<name>"),
    (re.compile(r"[\[(](?:\s*-?\d+(?:\.\d+)?\s*,?)+[\])]"), "<shape>"),
    (re.compile(r"(?<![A-Za-z_<])-?\d+(?:\.\d+)*(?:e[+-]?\d+)?"), "<number>"),
)
_HOLE = re.compile(r"<(?:address|pointer|path|host|name|shape|number)>")
_SHORTEST, _LONGEST = 12, 300
_MOST_A_TEXT = 20


@dataclass(frozen=True, slots=True)
class Message:
    """One error line of a text: as printed, without prefix, and as a template."""

    line: str
    template: str


def find_messages(text: str) -> list[Message]:
    """The error messages of a text, each template once, the last ones first: a traceback ends with what matters."""
    found: dict[str, Message] = {}
    for line in reversed(text.splitlines()):
        bare = _PREFIX.sub("", line).strip().strip("`*").strip()
        if len(bare) < _SHORTEST or len(bare) > 2000 or not _MESSAGE.match(bare):
            continue
        template = template_of(bare[:_LONGEST])
        # A bare name of an exception tells nothing apart.
        if len(_HOLE.sub("", template)) >= _SHORTEST and " " in template:
            found.setdefault(template, Message(bare[:_LONGEST], template))
        if len(found) >= _MOST_A_TEXT:
            break
    return list(found.values())


def template_of(line: str) -> str:
    """The line with holes for what changes from job to job."""
    for pattern, hole in _HOLES:
        line = pattern.sub(hole, line)
    return " ".join(line.split())


def expression_of(template: str) -> str:
    """A regular expression that every line of this template matches."""
    parts = _HOLE.split(template)
    holes = _HOLE.findall(template)
    kinds = {"<number>": r"-?[\d.e+-]+", "<shape>": r"[\[(][^\])]*[\])]", "<name>": r"['\"`][^'\"`]*['\"`]"}
    built = _escape(parts[0])
    for hole, part in zip(holes, parts[1:], strict=True):
        built += kinds.get(hole, r"\S+") + _escape(part)
    return built


def _escape(text: str) -> str:
    # re.escape also escapes blanks and dashes, which would hide the words from a reader.
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)
