"""The last steps' results, and the state they began with, in memory: written out when something happens."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .checkpoints import folder_name, write_whole
from .state import State

ALWAYS_KEPT = 4096  # bytes; smaller results are written at once: they steer the script, and cost nothing
KEPT_AT_START = 1 << 20  # the same before the first step, where objects and settings are exchanged


@dataclass(frozen=True)
class _Result:
    number: int
    step: int
    data: Any
    share: list[int]
    size: int  # of the whole result


@dataclass(frozen=True)
class _Snapshot:
    step: int
    tensors: dict[str, Any]
    facts: dict[str, Any]


class Ring:
    """Two snapshots of the state at most, and all results since the older: at least `steps` steps, at most twice as many."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._results: deque[_Result] = deque()
        self._snapshots: deque[_Snapshot] = deque()
        self._written: set[int] = set()
        self._spare: list[dict[str, Any]] = []  # memory of dropped snapshots: taking it anew costs more than the copy
        self.bytes_held = 0
        self.most_bytes = 0

    def add(self, number: int, step: int, data: Any, share: list[int], size: int) -> None:
        """Keep a result; `data` is copied."""
        self._results.append(_Result(number, step, data.copy(), share, size))
        self.bytes_held += len(data)
        self.most_bytes = max(self.most_bytes, self.bytes_held)

    def wants_snapshot(self, step: int) -> bool:
        """Whether the state after this step begins a new stretch."""
        return step % self._steps == 0

    def snapshot(self, state: State) -> None:
        """Copy the state, and forget what lies before the older snapshot."""
        into = self._spare.pop() if self._spare else {}
        for name, tensor in state.tensors.items():
            held = into.get(name)
            if held is not None and held.shape == tensor.shape and held.dtype == tensor.dtype:
                held.copy_(tensor)
            else:
                into[name] = tensor.clone()
        self._snapshots.append(_Snapshot(state.step, into, state.facts()))
        while len(self._snapshots) > 2:
            self._spare.append(self._snapshots.popleft().tensors)
        if len(self._snapshots) == 2:
            oldest = self._snapshots[0].step
            while self._results and self._results[0].step < oldest:
                self.bytes_held -= len(self._results.popleft().data)

    @property
    def begin(self) -> int:
        """The step from which on everything is held."""
        return self._snapshots[0].step if len(self._snapshots) == 2 else 0

    def write(self, record: str, tensor: Callable[[str, Any], list[int]], line: Callable[..., None]) -> int:
        """Write all that is held and not yet written; returns how many bytes."""
        written = 0
        for snapshot in list(self._snapshots):
            path = os.path.join(record, folder_name(snapshot.step, "snapshot"))
            if not os.path.isdir(path):
                written += write_whole(snapshot.tensors, snapshot.facts, path)
                line("snapshot", s=snapshot.step)
        for result in list(self._results):
            if result.number not in self._written:
                self._written.add(result.number)
                place = tensor(str(result.number), result.data)
                line("data", n=result.number, at=place, share=result.share, of=result.size)
                written += len(result.data)
        return written


class Listener:
    """A thread that sees a request to write, even while the main thread hangs in a collective."""

    def __init__(self, request: str, act: Callable[[str], None]) -> None:
        self._request, self._act = request, act
        self._stop = threading.Event()
        self._seen = 0.0
        threading.Thread(target=self._run, name="phalanx-record", daemon=True).start()

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            try:
                at = os.stat(self._request).st_mtime
            except OSError:
                continue
            if at > self._seen:
                self._seen = at
                self._act("asked for")

    def close(self) -> None:
        self._stop.set()
