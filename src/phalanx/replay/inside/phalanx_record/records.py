"""Reads what ranks recorded. Nothing in it is trusted: it is numbers, compared and copied, never run and never unpickled."""

from __future__ import annotations

import json
import mmap
import os
from typing import Any

from .entries import share
from .fingerprints import NAME
from .journal import LOG, META, regular, tensor_file, whole_lines
from .memory import Bytes

Line = dict[str, Any]


class BrokenRecordError(Exception):
    """The recording cannot be used; the message says why."""


class Record:
    """The log of one rank."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.meta = _read_meta(folder)
        self.calls: dict[tuple[str, int], Line] = {}  # by group and number in it
        self.done: dict[int, Line] = {}
        self.data: dict[int, Line] = {}  # where a result's bytes lie: in its `done` line, or later in one of its own
        self.groups: dict[str, list[int]] = {}
        self.steps: dict[int, Line] = {}
        self.marks: dict[str, list[Line]] = {"batch": [], "order": [], "model-input": []}
        self.epochs: list[Line] = []
        self.checkpoints: dict[int, Line] = {}
        made_by = self.meta.get("fingerprints", NAME)
        if made_by != NAME:
            raise BrokenRecordError(
                f"{folder} was recorded by another release: its fingerprints are {made_by!r}, not {NAME!r}"
            )
        for line in _read_lines(os.path.join(folder, LOG)):
            try:
                self._sort_in(line)
            except (KeyError, TypeError, ValueError) as error:
                raise BrokenRecordError(f"{folder}: a line of the log is not what it should be: {error!r}") from error
        self._files: dict[int, mmap.mmap] = {}

    def _sort_in(self, line: Line) -> None:
        kind = line.get("k")
        if kind == "call":
            self.calls[str(line["g"]), int(line["q"])] = line
        elif kind in ("done", "data"):
            number = int(line["n"])
            if kind == "done":
                self.done[number] = line
            if "at" in line:
                self.data[number] = line
        elif kind == "group":
            self.groups[str(line["g"])] = [int(rank) for rank in line["ranks"]]
        elif kind == "step":
            self.steps[int(line["s"])] = line
        elif kind in self.marks:
            self.marks[str(kind)].append(line)
        elif kind == "epoch":
            self.epochs.append(line)
        elif kind == "checkpoint":
            self.checkpoints[int(line["s"])] = line

    def piece(self, number: int) -> tuple[int, int, memoryview] | None:
        """The kept range of a result and its bytes; None if it was not kept."""
        line = self.data.get(number)
        if line is None:
            return None
        file, offset, size = (int(value) for value in line["at"])
        begin, end = (int(value) for value in line["share"])
        if file not in self._files:
            path = os.path.join(self.folder, tensor_file(file))
            try:
                with open(path, "rb", opener=regular) as opened:
                    self._files[file] = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise BrokenRecordError(f"{path}: {error}") from error
        whole = memoryview(self._files[file])
        if offset < 0 or size < 0 or offset + size > len(whole) or end - begin != size:
            raise BrokenRecordError(f"{self.folder}: the result of call {number} lies outside of its file")
        return begin, end, whole[offset : offset + size]


class Records:
    """The records of all ranks of an attempt, opened when they are needed."""

    def __init__(self, attempt: str) -> None:
        self._attempt = attempt
        self._opened: dict[int, Record] = {}

    def of(self, rank: int) -> Record:
        """One rank's. Raises BrokenRecordError where there is none."""
        if rank not in self._opened:
            self._opened[rank] = Record(os.path.join(self._attempt, f"rank{rank}", "record"))
        return self._opened[rank]

    def result(self, rank: int, group: str, place: int, size: int) -> bytes:
        """All bytes that a rank got in a call."""
        return b"".join(self.pieces(rank, group, place, size))

    def pieces(self, rank: int, group: str, place: int, size: int) -> list[memoryview]:
        """The same as the shares of its members, one behind the other, not copied. Raises BrokenRecordError."""
        own = self.of(rank)
        kept = own.piece(int(own.calls[group, place]["n"]))
        if kept is not None and kept[:2] == (0, size):
            return [kept[2]]
        members = own.groups.get(group.split(" ")[0], [])
        found = []
        for index, member in enumerate(members):
            begin, end = share(size, index, len(members))
            if begin == end:
                continue
            record = self.of(member)
            line = record.calls.get((group, place))
            piece = record.piece(int(line["n"])) if line is not None else None
            if piece is None or piece[0] > begin or piece[1] < end or piece[1] > size:
                raise BrokenRecordError(f"rank {member}'s share of the result is not in the recording")
            found.append(piece[2][begin - piece[0] : end - piece[0]])
        if sum(map(len, found)) != size:
            raise BrokenRecordError("the result is not in the recording")
        return found


def put(tensors: list[Any], pieces: list[memoryview]) -> None:
    """Fill tensors with these bytes, one behind the other."""
    import numpy

    left = [numpy.frombuffer(piece, numpy.uint8) for piece in pieces if len(piece)]
    for tensor in tensors:
        held = Bytes(tensor)
        target = held.array if held.is_view else numpy.empty(held.size, numpy.uint8)
        passed = 0
        while passed < held.size:
            source = left.pop(0)
            count = min(len(source), held.size - passed)
            target[passed : passed + count] = source[:count]
            passed += count
            if count < len(source):
                left.insert(0, source[count:])
        if not held.is_view and not hasattr(tensor, "data_ptr"):
            tensor[...] = target.view(tensor.dtype).reshape(tensor.shape)
        elif not held.is_view and held.size:
            import torch

            tensor.detach().copy_(torch.from_numpy(target).view(tensor.dtype).view(tensor.shape))


def _read_meta(folder: str) -> dict[str, Any]:
    try:
        with open(os.path.join(folder, META), encoding="utf-8", opener=regular) as file:
            return dict(json.load(file))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise BrokenRecordError(f"no recording in {folder}: {error}") from error


def _read_lines(path: str) -> list[Line]:
    try:
        return whole_lines(path)
    except OSError as error:
        raise BrokenRecordError(f"{path}: {error.strerror}") from error
