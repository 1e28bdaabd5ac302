"""Takes secrets out of text before it is kept: keys, tokens, passwords, credentials in addresses. In linear time."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import accumulate
from urllib.parse import quote

import hyperscan

from phalanx.sources.database import Occurrence, compiled, scan
from phalanx.sources.secret_forms import FORMS
from phalanx.sources.secret_reach import begins_within_key, ends_key, private_key

HIDDEN = "[redacted]"
_HIDDEN = HIDDEN.encode()
_SHORTEST = 8
_LIKE_A_SECRET = b"0aB1cD2eF3gH" * 12
_LONGEST_BEFORE = 256  # bytes of a line that may name the value below it
_LONGEST_KEY = 400  # lines; a private key that never ends was cut off, and what follows is output again


@cache
def _database() -> hyperscan.Database:
    expressions = [form.expression.encode() for form in FORMS]
    return compiled(expressions, range(len(FORMS)), [form.flags for form in FORMS], kept_as="secrets")


def _spans(data: bytes) -> tuple[list[tuple[int, int]], bool]:
    """Where secrets begin and end, in order, and whether the bytes end within a private key."""
    found: list[Occurrence] = []
    scan(_database(), data, found)
    spans: list[tuple[int, int]] = []
    done = 0
    is_open = False
    for end, number in sorted(found):
        form = FORMS[number]
        if end < done or (form.back and end - form.back < done):
            continue  # within what is hidden already
        start = end - form.back
        if form.seek is not None:
            start = end = form.seek(data, end)
            if start < done:
                continue
        stop = form.reach(data, end)
        if stop < 0 or (not form.back and stop == end):
            continue
        spans.append((start, stop))
        done = stop
        is_open = form.reach is private_key and stop == len(data) and not ends_key(data[-200:])
    return spans, is_open


def _without(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    if not spans:
        return data
    parts: list[bytes] = []
    done = 0
    for start, stop in spans:
        parts += (data[done:start], _HIDDEN)
        done = stop
    return b"".join((*parts, data[done:]))


def _redacted(data: bytes, before: bytes = b"") -> tuple[bytes, bool]:
    """The bytes without secrets, and whether they end within a private key. `before`: the line before them, which may name one."""
    spans, is_open = _spans(before + data)
    start = len(before)
    return _without(data, [(max(low, start) - start, high - start) for low, high in spans if high > start]), is_open


def redact(text: str) -> str:
    """The text without secrets; unchanged, and quickly so, if it holds none."""
    data = text.encode("utf-8", "surrogatepass")
    clean, _ = _redacted(data)
    return text if clean is data else clean.decode("utf-8", "surrogatepass")


def redact_source(text: str) -> str:
    """Python source without secrets, which runs as before: they are taken out of strings and comments only."""
    data = text.encode("utf-8", "surrogatepass")
    spans, _ = _spans(data)
    if not spans:
        return text
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(text)
        literals = _literals(text)
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError, MemoryError):  # then it need not run
        return redact(text)
    within = [(start, stop) for start, stop in spans if any(low <= start and stop <= high for low, high in literals)]
    return _without(data, within).decode("utf-8", "surrogatepass")


def _literals(text: str) -> list[tuple[int, int]]:
    """Where strings and comments stand, in bytes."""
    lines = text.splitlines(keepends=True)
    starts = list(accumulate((len(line.encode("utf-8", "surrogatepass")) for line in lines), initial=0))

    def place(row: int, column: int) -> int:
        line = lines[row - 1] if row <= len(lines) else ""
        return starts[min(row, len(starts)) - 1] + len(line[:column].encode("utf-8", "surrogatepass"))

    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(place(*token.start), place(*token.end)) for token in tokens if token.type in kinds]


# In a name of a variable or an option, in lower case and with underscores.
_PASSWORD_NAME = re.compile(
    r"pass(?:w|phrase|$|_)|secret|credential|(?:^|_)(?:pwd|pw)$|(?:api|access|private|auth|account|signing)_?key"
)
_SECRET_NAME = re.compile(
    r"token(?!iz)|key$|(?:^|_)(?:auth|pat|jwt|dsn|sid|sig|signature|webhook(?:_url)?)$|cookie|conn(?:ection)?_?str(?:ing)?"
)
# Words of language models, and where the shell stands.
_PUBLIC_NAME = re.compile(
    r"^(?:old)?pwd$|askpass$|(?:^|_)(?:pad|eos|bos|unk|sep|cls|mask|image|special|num|max|min|per|new|n)_tokens?|tokens(?:_|$)|token_(?:ids?|type|len\w*|count|dim|budget)"
)
_OPTION = re.compile(r"--?[\w.-]+")
_GLUED = re.compile(r"(-p)(?=\D*[^\d/.,])(?!y(?:thon|py)?$)([^-/.=\s][^/\s]{3,})")
# Short options that are given a password, by program; curl's holds a name before it.
_SHORT = {"sshpass": {"-p"}, "zip": {"-P"}, "unzip": {"-P"}, "curl": {"-u", "--user", "-U", "--proxy-user"}, "ldapsearch": {"-w"}, "ldapmodify": {"-w"}, "redis-cli": {"-a"}}  # fmt: skip


def is_secret(name: str, value: str) -> bool:
    """Whether a variable or an option of this name holds a secret. Numbers and switches are none, unless a password."""
    low = name.lower().replace("-", "_").strip("_")
    if not value or _PUBLIC_NAME.search(low):
        return False
    if _PASSWORD_NAME.search(low):
        return True
    return bool(_SECRET_NAME.search(low)) and not re.fullmatch(r"[-+.\d]*|(?i:true|false|none|yes|no|on|off)", value)


def redact_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables fit to be kept: those that are secrets by their name are hidden whole."""
    return {name: HIDDEN if is_secret(name, value) else redact(value) for name, value in sorted(variables.items())}


def redact_command(arguments: Iterable[str]) -> list[str]:
    """Arguments fit to be kept; also the value that stands behind `--api-key`, and `-pVALUE`."""
    shown: list[str] = []
    option = ""
    short: set[str] = set()
    for argument in arguments:
        glued = _GLUED.fullmatch(argument)
        if option in short:
            name, sign, _ = argument.partition(":") if option in _SHORT["curl"] else ("", "", "")
            shown.append(f"{name}{sign}{HIDDEN}" if sign or option not in _SHORT["curl"] else argument)
        elif option and not argument.startswith("-") and is_secret(option, argument):
            shown.append(HIDDEN)
        elif glued:
            shown.append(glued[1] + HIDDEN)
        else:
            shown.append(_redact_argument(argument))
        short |= _SHORT.get(argument.rpartition("/")[2], set())
        option = argument if _OPTION.fullmatch(argument) else ""
    return shown


def _redact_argument(argument: str) -> str:
    name, sign, value = argument.partition("=")
    if sign and re.fullmatch(r"-{0,2}\+{0,2}[\w.-]+", name) and is_secret(name, value):
        return f"{name}={HIDDEN}"
    return redact(argument)


def secret_values(variables: Mapping[str, str]) -> frozenset[str]:
    """What variables hold that are secrets by their name; not paths to where a secret is kept, nor words as short as `true`."""
    found: set[str] = set()
    for name, value in variables.items():
        if value.startswith("/") or not is_secret(name, value):
            continue
        # A value of several lines is printed line by line; in addresses it is quoted.
        found |= {part for part in (value, *value.splitlines(), quote(value, safe="")) if len(part) >= _SHORTEST}
    return frozenset(found)


def _ends_within(text: bytes, value: bytes) -> bool:
    """Whether the text ends with the beginning of a value."""
    at = text.find(value[:3], max(0, len(text) - len(value)))
    while at >= 0:
        if value.startswith(text[at:]):
            return True
        at = text.find(value[:3], at + 1)
    return False


def _last_line(piece: bytes) -> bytes:
    """The last line with its end, if there is one that is whole and short."""
    start = piece.rfind(b"\n", 0, len(piece) - 1) + 1
    return piece[start:] if piece.endswith(b"\n") and len(piece) - start <= _LONGEST_BEFORE else b""


class OutputRedactor:
    """Takes secrets out of a stream of output, piece by piece; a piece ends at the end of a line."""

    def __init__(self, excerpt: bytes = b"") -> None:
        """`excerpt`: what the pieces are, where they were cut out of longer output and may begin within a private key."""
        self._key_lines = _LONGEST_KEY if begins_within_key(excerpt) else 0  # how many more lines may belong to one
        self._values: tuple[bytes, ...] = ()
        self._before = b""  # the line before what comes next: a name may stand above its value

    def hide(self, values: Iterable[str]) -> None:
        """Take these out, too, whatever they look like."""
        given = {value.encode("utf-8", "surrogateescape") for value in values}
        self._values = tuple(sorted(given, key=len, reverse=True))

    def clean(self, piece: bytes) -> bytes:
        """The piece without secrets; quickly unchanged if it holds none."""
        cleaned, self._key_lines = self._cleaned(piece)
        self._before = b"" if self._key_lines else _last_line(piece)
        return cleaned

    def is_settled(self, beginning: bytes) -> bool:
        """Whether the beginning of a line holds no secret, nor the first part of one, whatever follows it."""
        if any(_ends_within(beginning, value) for value in self._values):
            return False
        longer = beginning + _LIKE_A_SECRET + b"@host"  # as the password of an address, too
        return not self._key_lines and _redacted(longer, self._before)[0] == longer

    def _cleaned(self, piece: bytes) -> tuple[bytes, int]:
        for value in self._values:
            piece = piece.replace(value, _HIDDEN)
        hidden: list[bytes] = []
        key_lines = self._key_lines
        if key_lines:
            piece, key_lines = self._pass_key(piece, key_lines, hidden)
        cleaned, is_open = _redacted(piece, self._before)
        if is_open:
            end = piece[len(piece.rstrip(b"\r\n")) :]
            return b"".join(hidden) + cleaned + end, _LONGEST_KEY
        return b"".join(hidden) + cleaned if hidden else cleaned, key_lines

    @staticmethod
    def _pass_key(piece: bytes, key_lines: int, hidden: list[bytes]) -> tuple[bytes, int]:
        """Hide the lines that still belong to a key; returns what follows it."""
        lines = piece.splitlines(keepends=True)
        for index, line in enumerate(lines):
            hidden.append(_HIDDEN + line[len(line.rstrip(b"\r\n")) :])
            key_lines -= 1
            if ends_key(line) or not key_lines:
                return b"".join(lines[index + 1 :]), 0
        return b"", key_lines
