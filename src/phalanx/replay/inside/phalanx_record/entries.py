"""One collective as a line of the log: what was called, on what, with which fingerprints, from which line."""

from __future__ import annotations

import ctypes
import json
from typing import Any, NamedTuple

from .calls import Call
from .fingerprints import of_memory
from .memory import Bytes, check_supported, lies_plainly
from .places import users_line

_MOST_TEXTS = 4096
_texts: dict[Any, str] = {}

_SHARED_ABOVE = 4096  # bytes; smaller results are kept whole by everyone, so that one rank's loss costs little


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


def describe(call: Call, folder: str) -> tuple[str, list[Bytes]]:
    """The line of a call that is entered, up to its fingerprints, as the inside of a JSON object; and what these are taken of.

    They must be taken before the call runs: many work in place. What is the same every time that the script comes by is kept
    as text.
    """
    given, got = call.given(), call.got()
    shown = given or got
    kind = call.kind
    line = call.line if hasattr(call, "line") else users_line(folder, kind.name)
    if len(shown) == 1 and not kind.shown:
        key: Any = (kind.name, call.series, line, shown[0].dtype, shown[0].shape)
    else:
        key = (kind.name, call.series, line, *[(tensor.dtype, tensor.shape) for tensor in shown], call.details())
    text = _texts.get(key)
    if text is None:
        if len(_texts) > _MOST_TEXTS:  # shapes that are new every time
            _texts.clear()
        text = _texts[key] = _text_of(call, shown, line)
    held = [Bytes(tensor) for tensor in given]
    if not isinstance(call, Call):  # Horovod's results get their size when they arrive
        return text, held
    if kind.gives == kind.gets and given:  # in place; of a broadcast only the root gives
        call.filled = held
    elif kind.gathers:  # mostly nobody reads it, see `is_own`
        pass
    elif all(lies_plainly(tensor) for tensor in got):
        call.filled = [Bytes(tensor) for tensor in got]
    else:  # not copied before it is there
        for tensor in got:
            check_supported(tensor)
    return text, held


def _text_of(call: Call, shown: list[Any], line: str) -> str:
    shapes = [[str(tensor.dtype).removeprefix("torch."), *tensor.shape] for tensor in shown]
    facts = {"op": call.kind.name, "g": call.series, "shapes": shapes, "line": line}
    if details := call.details():
        facts["with"] = details
    return json.dumps(facts, separators=(",", ":"))[1:-1] + ',"in":['


class Piece(NamedTuple):
    """Some bytes of a tensor."""

    address: int
    size: int


class Result:
    """What a rank got: where it lies, and which part of it this rank keeps and takes the fingerprint of.

    Where all members get the same, each has its share: together they see all of it, for an N-th of the time.
    """

    def __init__(self, call: Call) -> None:
        held = getattr(call, "filled", None)
        if held is None or not all(one.is_view for one in held):
            held = [Bytes(tensor) for tensor in call.got()]
        self.held = held
        self.size = sum([one.size for one in self.held])
        self.begin, self.end = share_of(call, self.size)
        self._joined: Any = None  # holds the memory of a share that had to be put together

    @property
    def is_whole(self) -> bool:
        """Whether this rank keeps all of it."""
        return (self.begin, self.end) == (0, self.size)

    def memory(self) -> list[Any]:
        """What fingerprints are taken of: each tensor where it is kept whole, else the share as one."""
        if self.is_whole:
            return list(self.held)
        pieces = self._pieces()
        if len(pieces) > 1:  # several tensors are thought of as one
            self._joined = self.share()
            return [Piece(self._joined.ctypes.data, len(self._joined))]
        return [Piece(*pieces[0])]

    def fingerprints(self) -> list[str]:
        """As they stand in a log."""
        return [f"{of_memory(one.address, one.size, False)[0]:016x}" for one in self.memory()]

    def share(self) -> Any:
        """The kept bytes, as one array; a view where they lie in one tensor."""
        import numpy

        arrays = [
            numpy.frombuffer((ctypes.c_uint8 * size).from_address(place), numpy.uint8) for place, size in self._pieces()
        ]
        return arrays[0] if len(arrays) == 1 else numpy.concatenate(arrays) if arrays else numpy.empty(0, numpy.uint8)

    def _pieces(self) -> list[tuple[int, int]]:
        """Address and size of what the share is made of: several tensors are thought of as one."""
        if len(self.held) == 1:
            return [(self.held[0].address + self.begin, self.end - self.begin)]
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


def is_own(given: int, members: int) -> bool:
    """Whether a member's share of what is gathered is what it handed in, so many bytes: then it need not be read again."""
    return given % 8 == 0 and members > 1 and given * members > _SHARED_ABOVE


def share(size: int, member: int, members: int) -> tuple[int, int]:
    """One member's part of so many bytes, at whole words."""

    def bound(number: int) -> int:
        return size if number == members else size * number // members // 8 * 8

    return bound(member), bound(member + 1)
