"""One collective as a line of the log: what was called, on what, with which fingerprints, from which line."""

from __future__ import annotations

from typing import Any

from .calls import Call
from .fingerprints import Bytes, fingerprint, of_tensors
from .places import users_line

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


def describe(call: Call, number: int, place: int, step: int, folder: str) -> dict[str, Any]:
    """The line of a call that is entered. Must be made before it runs: many work in place."""
    given = call.given()
    for tensor in (*given, *call.got()):
        if hasattr(tensor, "layout") and (str(tensor.layout) != "torch.strided" or tensor.is_meta):
            raise UnsupportedError(f"{call.kind.name} of a tensor that is {tensor.layout} on {tensor.device}")
    wholes, parts = of_tensors(given)
    line: dict[str, Any] = {
        "n": number,
        "s": step,
        "op": call.kind.name,
        "g": call.series,
        "q": place,
        "in": wholes,
        "shapes": [[str(tensor.dtype).removeprefix("torch."), *tensor.shape] for tensor in given or call.got()],
        "line": call.line if hasattr(call, "line") else users_line(folder),
    }
    if any(parts):
        line["parts"] = parts
    if details := call.details():
        line["with"] = details
    return line


def results_of(call: Call) -> tuple[list[Bytes], list[str]]:
    """The bytes that the rank got, and their fingerprints.

    Where all members get the same, each takes the fingerprint of its share: together they see all of it, for an N-th of the time.
    """
    held = [Bytes(tensor) for tensor in call.got()]
    size = sum(len(one.array) for one in held)
    begin, end = share_of(call, size)
    if (begin, end) != (0, size):
        return held, [f"{fingerprint(cut(held, begin, end))[0]:016x}"]
    return held, [f"{fingerprint(one.array)[0]:016x}" for one in held]


def share_of(call: Call, size: int) -> tuple[int, int]:
    """The range of the result's bytes that this rank keeps: all, or its part where every member gets the same."""
    members = call.group.size()
    if not call.kind.alike or members == 1 or size <= _SHARED_ABOVE:
        return 0, size
    return share(size, call.group.rank(), members)


def share(size: int, member: int, members: int) -> tuple[int, int]:
    """One member's part of so many bytes, at whole words."""

    def bound(number: int) -> int:
        return size if number == members else size * number // members // 8 * 8

    return bound(member), bound(member + 1)


def cut(held: list[Bytes], begin: int, end: int) -> Any:
    """A range of bytes out of several arrays that are thought of as one."""
    import numpy

    pieces, passed = [], 0
    for one in held:
        low, high = max(begin - passed, 0), min(end - passed, len(one.array))
        if low < high:
            pieces.append(one.array[low:high])
        passed += len(one.array)
    if len(pieces) == 1:
        return pieces[0]
    return numpy.concatenate(pieces) if pieces else numpy.empty(0, numpy.uint8)
