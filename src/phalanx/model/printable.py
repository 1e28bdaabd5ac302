"""What may reach a terminal: control characters, escape sequences and marks that turn text around are shown, not obeyed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, TypeVar, cast

_Value = TypeVar("_Value")
# C0 without tab and newline, DEL, C1; marks of direction, invisible characters, separators of lines, tags; halves of pairs.
_UNPRINTABLE = "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
_ANY = re.compile(f"[{_UNPRINTABLE}]")
# Kept by `safe`: colours and the cursor's being shown; at the beginning, where only our progress bars write it, what moves the cursor.
_OURS = re.compile(rf"(\x1b\[[0-9;]{{0,20}}m|\x1b\[\?25[lh]|\r(?=\n))|[{_UNPRINTABLE}]")
_MOVES = re.compile(r"(?:[\r\n]|\x1b\[\?25[lh]|\x1b\[[0-9]?[AK])+")
_RAW = re.compile(
    rb"(\x1b\[[0-9;]{0,20}m)|[\x00-\x08\x0b-\x1f\x7f]"
    rb"|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xa9]|\xef\xbb\xbf|\xf3\xa0[\x80\x81][\x80-\xbf]"
)


def _escaped(match: re.Match[str]) -> str:
    if match.re is _OURS and match[1] is not None:
        return match[1]
    units = match[0].encode("utf-16-be", "surrogatepass")  # as JSON spells it: within a document it stays the same text
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def printable(text: str) -> str:
    """Foreign text for a terminal; it keeps its tabs and newlines."""
    return text if text.isascii() and text.isprintable() else _ANY.sub(_escaped, text)


def safe(text: str) -> str:
    """Text of ours, foreign parts in it: colours stay, and what moves the cursor before a progress bar is drawn."""
    if text.isascii() and text.isprintable():
        return text
    moves = _MOVES.match(text)
    return moves[0] + _OURS.sub(_escaped, text[moves.end() :]) if moves else _OURS.sub(_escaped, text)


def safe_bytes(line: bytes) -> bytes:
    """A line of a rank's output for a terminal; colours stay."""
    return _RAW.sub(_escaped_bytes, line)


def _escaped_bytes(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return match[1]
    return "".join(f"\\u{ord(letter):04x}" for letter in match[0].decode("utf-8", "replace")).encode()


def printable_tree(value: _Value) -> _Value:
    """The same object with every text in it printable: a report, as it is shown to people."""
    return cast(_Value, _tree(value))


def _tree(value: Any) -> Any:
    if isinstance(value, str):
        return value if type(value) is not str else printable(value)  # members of enumerations are ours
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {
            one.name: new
            for one in dataclasses.fields(value)
            if one.init and (new := _tree(old := getattr(value, one.name))) is not old
        }
        return dataclasses.replace(value, **changes) if changes else value
    if isinstance(value, (list, tuple)):
        made = [_tree(one) for one in value]
        if all(new is old for new, old in zip(made, value, strict=True)):
            return value
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, Mapping):
        return {_tree(name): _tree(one) for name, one in value.items()}
    return value
