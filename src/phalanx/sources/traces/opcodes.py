"""Walks the opcodes of a plain pickle in the form that PyTorch writes, without building anything: where each field of a dictionary stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from struct import unpack_from

# Opcodes that make one value of one fixed length, lists of such values, and tuples of the values before. Strings are apart: regular expressions
# cannot skip by a length. Anything else, a class above all, matches nothing, and the walk gives up.
_TOKEN = re.compile(
    rb"(?P<atom>h.|\]\((?:h.|j.{4}|K.|M..|J.{4})*+e|K.|M..|J.{4}|\x8a\x08.{8}|G.{8}|j.{4}|[N\x88\x89)])|(?P<put>q.|r.{4})|(?P<open>[\]}]\()|(?P<close>[eu])|(?P<tuple>[\x85-\x87])|(?P<text>X)",
    re.DOTALL,
)
_DEEPEST = 40
_CLOSES = {b"](": b"e", b"}(": b"u"}


class OtherFormError(Exception):
    """The bytes are not in PyTorch's form; the unpickler has to say what they are."""


@dataclass(slots=True)
class Names:
    """The watched ones of the strings that a pickle numbered, under the bytes that refer to them, and the last number given."""

    watched: frozenset[bytes]
    texts: dict[bytes, bytes] = field(default_factory=dict)
    last: int = -1

    def put(self, token: bytes, text: bytes) -> None:
        """Numbers rise, as PyTorch counts: so none is given twice, and a reference means the same wherever it stands."""
        number = int.from_bytes(token[1:], "little")
        if number <= self.last:
            raise OtherFormError
        self.last = number
        if text in self.watched:
            self.texts[(b"h" if token[:1] == b"q" else b"j") + token[1:]] = text


@dataclass(frozen=True, slots=True)
class Walked:
    """A dictionary in a pickle: where it ends, and for each field its name, where its value begins and where the next key."""

    stop: int
    fields: tuple[tuple[bytes, int, int], ...]
    first_number: int | None  # that it gives


def walk_dictionary(data: bytes, at: int, names: Names) -> Walked:
    """The dictionary that begins at a place. Raises OtherFormError for what PyTorch would not write."""
    if data[at : at + 2] != b"}(":
        raise OtherFormError
    levels: list[tuple[bytes, list[int]]] = [(b"u", [])]
    items = levels[0][1]  # where the items of the innermost open container begin
    at += 2
    first_number = None
    text = b""
    while True:
        token = _TOKEN.match(data, at)
        if token is None:
            raise OtherFormError
        kind = token.lastgroup
        if kind == "atom":
            items.append(at)
        elif kind == "text":
            items.append(at)
            at, text = _text(data, at)
            continue
        elif kind == "put":
            if not items:
                raise OtherFormError
            names.put(token[0], text)
            first_number = names.last if first_number is None else first_number
        elif kind == "open":
            items.append(at)
            items = []
            levels.append((_CLOSES[token[0]], items))
            if len(levels) > _DEEPEST:
                raise OtherFormError
        elif kind == "close":
            expected, inside = levels.pop()
            if expected != token[0] or (expected == b"u" and len(inside) % 2):
                raise OtherFormError
            if not levels:
                return Walked(token.end(), _fields(data, inside, token.start(), names), first_number)
            items = levels[-1][1]
        else:
            length = token[0][0] - 0x84
            if len(items) < length:
                raise OtherFormError
            del items[len(items) - length + 1 :]
        text = b""
        at = token.end()


def _text(data: bytes, at: int) -> tuple[int, bytes]:
    if len(data) < at + 5:
        raise OtherFormError
    stop = at + 5 + unpack_from("<I", data, at + 1)[0]
    if stop >= len(data):
        raise OtherFormError
    return stop, data[at + 5 : min(stop, at + 45)]


def _fields(data: bytes, items: list[int], stop: int, names: Names) -> tuple[tuple[bytes, int, int], ...]:
    """Names of keys are those of this pickle; one that cannot be told is empty."""
    found = []
    for place in range(0, len(items), 2):
        start = items[place + 1]
        key = data[items[place] : start]
        name = _text(key, 0)[1] if key[:1] == b"X" else names.texts.get(key, b"")
        found.append((name, start, items[place + 2] if place + 2 < len(items) else stop))
    return tuple(found)
