"""One collective as a line of the log: what was called, on what, with which fingerprints, from which line."""

from __future__ import annotations

import ctypes
import json
from typing import Any

from .calls import Call
from .fingerprints import Bytes, of_memory, of_tensors
from .places import users_line

_STRIDED = "torch.strided"
_MOST_TEXTS = 4096
_texts: dict[Any, str] = {}

_SHARED_ABOVE = 4096  # bytes; smaller results are kept whole by everyone, so that one rank's loss costs little


class UnsupportedError(Exception):
    """A call that cannot be recorded; the message says why."""


class Numbering:
    """Numbers calls: in all, and within their group. By order of issue, because completion has no order."""

    def __init__(self) -> None:
        self.calls = 0
        self._in_group: dict[str, int] = {}

    def next(self, group: str) -> tuple[int, int]:
        place = self._in_group.get(group, 0)
        self._in_group[group] = place + 1
        number = self.calls
        self.calls += 1
        return number, place


def describe(call: Call, folder: str) -> str:
    """The line of a call that is entered, as the inside of a JSON object, without its numbers.

    Must be made before the call runs: many work in place. What is the same every time that the script comes by is kept as
    text; the rest is hexadecimal digits.
    """
    given, got = call.given(), call.got()
    shown = given or got
    line = call.line if hasattr(call, "line") else users_line(folder)
    key = (call.kind.name, call.series, line, *[(tensor.dtype, tensor.shape) for tensor in shown], call.details())
    text = _texts.get(key)
    if text is None:
        if len(_texts) > _MOST_TEXTS:  # shapes that are new every time
            _texts.clear()
        text = _texts[key] = _text_of(call, shown, line)
    for tensor in given if call.kind.gives == call.kind.gets else (*given, *got):
        if getattr(tensor, "is_meta", False) or str(getattr(tensor, "layout", _STRIDED)) != _STRIDED:
            raise UnsupportedError(f"{call.kind.name} of a tensor that is {tensor.layout} on {tensor.device}")
    wholes, parts = of_tensors(given)
    if not any(parts):
        return f'{text},"in":{_listed(wholes)}'
    return f'{text},"in":{_listed(wholes)},"parts":{_listed(parts)}'


def _text_of(call: Call, shown: list[Any], line: str) -> str:
    shapes = [[str(tensor.dtype).removeprefix("torch."), *tensor.shape] for tensor in shown]
    facts = {"op": call.kind.name, "g": call.series, "shapes": shapes, "line": line}
    if details := call.details():
        facts["with"] = details
    return json.dumps(facts, separators=(",", ":"))[1:-1]


def _listed(digits: list[str]) -> str:
    return '["' + '","'.join(digits) + '"]' if digits else "[]"


class Result:
    """What a rank got: where it lies, and which part of it this rank keeps and takes the fingerprint of.

    Where all members get the same, each has its share: together they see all of it, for an N-th of the time.
    """

    def __init__(self, call: Call) -> None:
        self.held = [Bytes(tensor) for tensor in call.got()]
        self.size = sum([one.size for one in self.held])
        self.begin, self.end = share_of(call, self.size)

    @property
    def is_whole(self) -> bool:
        """Whether this rank keeps all of it."""
        return (self.begin, self.end) == (0, self.size)

    def fingerprints(self, copy: int = 0) -> list[str]:
        """Of each tensor where it is kept whole, else one of the share. With `copy` the share is copied to that address."""
        if self.is_whole:
            found = []
            for one in self.held:
                found.append(f"{of_memory(one.address, one.size, False, copy)[0]:016x}")
                copy += one.size if copy else 0
            return found
        pieces = self._pieces()
        if len(pieces) == 1:
            return [f"{of_memory(*pieces[0], False, copy)[0]:016x}"]
        if not copy:
            data = self.share()
            return [f"{of_memory(data.ctypes.data, len(data), False)[0]:016x}"]
        at = copy
        for address, size in pieces:
            ctypes.memmove(at, address, size)
            at += size
        return [f"{of_memory(copy, self.end - self.begin, False)[0]:016x}"]

    def share(self) -> Any:
        """The kept bytes, as one array; a view where they lie in one tensor."""
        import numpy

        arrays = [
            numpy.frombuffer((ctypes.c_uint8 * size).from_address(place), numpy.uint8) for place, size in self._pieces()
        ]
        return arrays[0] if len(arrays) == 1 else numpy.concatenate(arrays) if arrays else numpy.empty(0, numpy.uint8)

    def _pieces(self) -> list[tuple[int, int]]:
        """Address and size of what the share is made of: several tensors are thought of as one."""
        found, passed = [], 0
        for one in self.held:
            low, high = max(self.begin - passed, 0), min(self.end - passed, one.size)
            if low < high:
                found.append((one.address + low, high - low))
            passed += one.size
        return found


def share_of(call: Call, size: int) -> tuple[int, int]:
    """The range of the result's bytes that this rank keeps: all, or its part where every member gets the same."""
    members = call.group.size
    if not call.kind.alike or members == 1 or size <= _SHARED_ABOVE:
        return 0, size
    return share(size, call.group.rank, members)


def share(size: int, member: int, members: int) -> tuple[int, int]:
    """One member's part of so many bytes, at whole words."""

    def bound(number: int) -> int:
        return size if number == members else size * number // members // 8 * 8

    return bound(member), bound(member + 1)
