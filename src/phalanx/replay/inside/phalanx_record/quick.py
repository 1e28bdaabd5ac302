"""The compiled kernel of collectives, seen from Python: loads it, shares numbers with it, teaches it the calls that come again.

`kernel.cpp` says what it does. Whatever it cannot do is done in Python as without it, in the same record.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from . import compiled, fingerprints
from .calls import Call, Operation
from .entries import is_own, share_of
from .places import way_to_user
from .segments import Cursor

OPERATIONS = ("allreduce_", "broadcast_", "_allgather_base_", "_reduce_scatter_base_")
_NUMBERS = (
    "log",
    "step",
    "stopped",
    "is_ring",
    "looks",
    "smallest",
    "calls",
    "calls_here",
    "bytes_of_log",
    "bytes_kept",
    "bytes_read",
)
_Told = ctypes.CFUNCTYPE(None, ctypes.c_int64)
_ToldTwo = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)


class Shared(ctypes.Structure):
    """What both sides know: the same fields in `kernel.cpp`."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in _NUMBERS),
        ("cursor", ctypes.c_void_p),
        ("line", ctypes.c_void_p),
        ("copy", ctypes.c_void_p),
        ("failed", _Told),
        ("odd", _ToldTwo),
        ("grow", _Told),
    ]


class Taught(ctypes.Structure):
    """What is taught of a call, beside its text."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("series", "gives", "begin", "end", "of", "is_own", "width")),
        ("exponents", ctypes.c_uint64),
    ]


class Quick:
    """The loaded kernel. It is never unloaded: threads of the backend may still call it."""

    OPERATIONS = OPERATIONS

    def __init__(
        self,
        path: str,
        log: int,
        failed: Callable[[int], None],
        odd: Callable[[str, int], None],
        grow: Callable[[int], None],
    ) -> None:
        free, held = (
            ctypes.CDLL(path),
            ctypes.PyDLL(path),
        )  # the second keeps the interpreter's lock: for a few instructions
        line, copy = fingerprints.addresses()
        self.shared = Shared(log=log, line=line, copy=copy)
        self.shared.failed, self.shared.grow = _Told(failed), _Told(grow)
        self.shared.odd = _ToldTwo(lambda number, step: odd(OPERATIONS[number], step))
        self._stand, self._aside = free.phalanx_kernel_stand, free.phalanx_kernel_step_aside
        self._stand.argtypes = [ctypes.c_int64, ctypes.c_char_p, *[ctypes.c_int64] * 3]
        self._code, self._pending, self._teach = (
            getattr(held, f"phalanx_kernel_{name}") for name in ("code", "pending", "teach")
        )
        self._code.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._teach.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
        self._series_of, self._next = held.phalanx_kernel_series, held.phalanx_kernel_next
        self._series_of.restype = ctypes.c_int64
        self._next.argtypes = [ctypes.c_int64, ctypes.c_void_p]
        self._series: dict[str, int] = {}
        self._codes: dict[int, Any] = {}  # held: the kernel knows them by where they lie
        self.ring: AbstractContextManager[None] = _Lock(free.phalanx_kernel_lock, free.phalanx_kernel_unlock)
        if not free.phalanx_kernel_begin(ctypes.byref(self.shared)):
            raise OSError("this Python lacks functions that the compiled kernel needs")

    def stand_between(self, operations: list[Operation]) -> None:
        """Take these operations over; each has its way to Python already."""
        for one in operations:
            name = one.kind.name
            gives, gets = (one.gives if one.gives >= 0 else one.gets), one.gets
            if not self._stand(OPERATIONS.index(name), name.encode(), gives, gets, one.group):
                raise OSError(f"PyTorch did not take the compiled kernel for {name}")

    def step_aside(self) -> None:
        self._aside()

    def learn(self, call: Call, text: str, held: list[Any]) -> None:
        """A call that Python has just written down: the next one like it need not come here."""
        state = self._pending()
        if not state:
            return
        for code, is_users in way_to_user():
            self._codes[id(code)] = code
            self._code(id(code), is_users)
        got = call.got()
        if state != 1 or len(got) != 1 or len(held) > 1:
            return
        kind, size = call.kind, got[0].nbytes
        exponents, width = fingerprints.look_of(got[0].dtype) if kind.reduces else fingerprints.UNSEEN
        begin, end = share_of(call, size)
        own = kind.gathers and is_own(held[0].size, call.group.size)
        taught = Taught(self._series_number(call.series), len(held), begin, end, size, own, width, exponents)
        data = text.encode()
        self._teach(ctypes.byref(taught), data, len(data))

    @property
    def calls(self) -> int:
        """How many there were, here and in Python."""
        return int(self.shared.calls)

    def next(self, series: str) -> tuple[int, int]:
        """The numbers of a call that Python handles: in all, and in its series."""
        found = (ctypes.c_int64 * 2)()
        self._next(self._series_number(series), found)
        return found[0], found[1]

    def _series_number(self, series: str) -> int:
        if series not in self._series:
            self._series[series] = self._series_of(series.encode())
        return self._series[series]

    def keep_in(self, cursor: Cursor | None, smallest: int = 0) -> None:
        """Where results go from now on; those up to `smallest` bytes are Python's affair."""
        self.shared.is_ring, self.shared.smallest = cursor is not None, smallest
        self.shared.cursor = ctypes.addressof(cursor) if cursor is not None else None


class _Lock:
    """The kernel's lock of the ring."""

    def __init__(self, lock: Any, unlock: Any) -> None:
        self._lock, self._unlock = lock, unlock

    def __enter__(self) -> None:
        self._lock()

    def __exit__(self, *error: object) -> None:
        self._unlock()


def find(torch: Any) -> tuple[str, dict[str, str]]:
    """The compiled kernel for this PyTorch; where there is none, facts by which it can be made for later jobs."""
    facts = compiled.facts_of(torch)
    target = compiled.target_of(facts)
    if target and os.path.exists(target) and compiled.is_trusted(target):
        return target, {}
    return "", facts
