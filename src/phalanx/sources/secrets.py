"""Takes secrets out of text before it is kept: keys, tokens, passwords, credentials in addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HIDDEN = "[redacted]"
_WHOLE = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"  # AWS key ids
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}\b|\bgithub_pat_\w{30,}\b"
    r"|\bhf_[A-Za-z0-9]{20,}\b"
    r"|\bglpat-[\w-]{20,}\b"
    r"|\bxox[abprs]-[\w-]{10,}\b"
    r"|\bsk-[A-Za-z0-9_-]{20,}\b"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}"  # JSON web tokens
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*"
)
_ASSIGNED = re.compile(
    r"(?i)\b([\w.-]*(?:password|passwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|private[_-]?key|_token|credential)[\w.-]*"
    r"[\"']?\s*(?:=|:)\s*[\"']?)(?!None\b|null\b|\[redacted\])([^\s\"',;]{6,})"
)
_BEARER = re.compile(r"(?i)\b((?:bearer|basic)\s+)[A-Za-z0-9+/._~=-]{12,}")
_IN_ADDRESS = re.compile(r"(\w+://)[^\s/:@]+:[^\s/@]+@")
_HINTS = (
    "key", "pass", "token", "secret", "://", "basic", "bearer", "credential", "begin", "sk-", "eyj", "hf_", "xox", "akia", "asia",
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat",
)  # fmt: skip


def redact(text: str) -> str:
    """The text without secrets; unchanged, and quickly so, if it holds none."""
    low = text.lower()
    for hint in _HINTS:  # a generator would take twice as long
        if hint in low:
            return _redacted(text)
    return text


def _redacted(text: str) -> str:
    text = _WHOLE.sub(HIDDEN, text)
    text = _ASSIGNED.sub(lambda match: match[1] + HIDDEN, text)
    text = _BEARER.sub(lambda match: match[1] + HIDDEN, text)
    return _IN_ADDRESS.sub(lambda match: match[1] + HIDDEN + "@", text)


_SECRET_NAME = re.compile(
    r"(?i)pass(?:w|phrase|$)|secret|token|credential|api_?key|access_?key|private_?key|_key$|_auth$|cookie"
)
_SHORTEST = 8
_OPTION = re.compile(r"--?[\w.-]+")
# In lower case, one of them stands in everything that `redact` would change: looked for in whole pieces of output at once.
_HINTS_IN_BYTES = (b"pass", b"secret", b"key", b"token", b"bearer", b"basic", b"credential", b"://", b"akia", b"asia", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"hf_", b"glpat", b"xox", b"sk-", b"eyj", b"-----begin", b"-----end")  # fmt: skip


def redact_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables fit to be kept: those that are secrets by their name are hidden whole."""
    return {
        name: HIDDEN if value and _SECRET_NAME.search(name) else redact(value)
        for name, value in sorted(variables.items())
    }


def redact_command(arguments: Iterable[str]) -> list[str]:
    """Arguments fit to be kept; also the value that stands behind `--api-key`."""
    shown: list[str] = []
    hides_next = False
    for argument in arguments:
        shown.append(HIDDEN if hides_next and not argument.startswith("-") else redact(argument))
        hides_next = bool(_OPTION.fullmatch(argument) and _SECRET_NAME.search(argument.replace("-", "_")))
    return shown


def secret_values(variables: Mapping[str, str]) -> frozenset[str]:
    """What variables hold that are secrets by their name; not paths to where a secret is kept, nor words as short as `true`."""
    return frozenset(
        value
        for name, value in variables.items()
        if len(value) >= _SHORTEST and not value.startswith("/") and _SECRET_NAME.search(name)
    )


class OutputRedactor:
    """Takes secrets out of a stream of output, piece by piece; a piece ends at the end of a line."""

    def __init__(self) -> None:
        self._inside_key = False
        self._values: re.Pattern[bytes] | None = None

    def hide(self, values: Iterable[str]) -> None:
        """Take these out, too, whatever they look like."""
        told = sorted({value.encode("utf-8", "surrogateescape") for value in values}, key=len, reverse=True)
        self._values = re.compile(b"|".join(map(re.escape, told))) if told else None

    def clean(self, piece: bytes) -> bytes:
        """The piece without secrets; quickly unchanged if it holds none."""
        if self._values is not None:
            piece = self._values.sub(HIDDEN.encode(), piece)
        low = piece.lower()
        if not self._inside_key and not any(hint in low for hint in _HINTS_IN_BYTES):
            return piece
        return b"".join(self._clean_line(line) for line in piece.splitlines(keepends=True))

    def _clean_line(self, line: bytes) -> bytes:
        end = line[len(line.rstrip(b"\r\n")) :]
        if self._inside_key:
            self._inside_key = b"-----END" not in line
            return HIDDEN.encode() + end
        if b"PRIVATE KEY-----" in line and b"-----BEGIN" in line:
            self._inside_key = b"-----END" not in line
        return redact(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
