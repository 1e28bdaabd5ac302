"""Stands between PyTorch and its collectives, all of them: those that DDP and FSDP start in C++ too.

Every collective goes through PyTorch's dispatcher as an operation of `c10d`. A kernel of ours under the key BackendSelect,
which is asked before any device's own, sees each call and passes it on. Nothing is added to operations on tensors.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from .calls import KINDS, Operation

Forward = Callable[[], Any]
Handler = Callable[[Operation, "tuple[Any, ...]", Forward], Any]

_library: list[Any] = []  # dropped, it would take its kernels with it
_quick: list[Any] = []
_ways: dict[str, Any] = {}


def stand_between(handle: Handler, quick: Any = None) -> None:
    """Have every collective handled: `handle(operation, args, forward)` returns what the caller gets; `forward()` does it really.

    `quick`, the compiled kernel, stands before Python where it can, and passes on what is new to it by an operator of ours.
    """
    import torch
    from torch._C import DispatchKey, _dispatch_keyset_full_after

    library = torch.library.Library("c10d", "IMPL")
    _library.append(library)
    quickly: list[Operation] = []
    below = _dispatch_keyset_full_after(DispatchKey.BackendSelect)

    def kernel_of(operation: Operation) -> Callable[..., Any]:
        overload = operation.overload
        # Not get_kernel().call_boxed, which holds the interpreter's lock while Gloo's threads need it.
        redispatch = getattr(getattr(overload, "_handle", None), "redispatch_boxed", overload.redispatch)

        def kernel(keys: Any, *args: Any) -> Any:
            return handle(operation, args, lambda: redispatch(keys & below, *args))

        return kernel

    for name in KINDS:
        operation = Operation.find(name)
        if operation is not None:
            kernel = kernel_of(operation)
            keep_from_compiler(kernel)
            if quick is not None and name in quick.OPERATIONS:
                _make_way(operation, kernel)
                quickly.append(operation)
            else:
                library.impl(name, kernel, "BackendSelect", with_keyset=True)
    if quickly:
        quick.stand_between(quickly)
        _quick.append(quick)


def _make_way(operation: Operation, kernel: Callable[..., Any]) -> None:
    """An operator `phalanx_record::name` like `c10d::name`, which is the Python kernel; it stays."""
    import torch

    name = operation.kind.name
    if name not in _ways:
        _ways[name] = torch.library.Library("phalanx_record", "FRAGMENT")
        _ways[name].define(str(operation.overload._schema).partition("::")[2])
        _ways[name].impl(name, kernel, "BackendSelect", with_keyset=True)


def step_aside() -> None:
    """Take the kernels out again: for measurements, which must not count them where nothing is recorded."""
    while _quick:
        _quick.pop().step_aside()
    while _library:
        _library.pop()._destroy()


def keep_from_compiler(function: Callable[..., Any]) -> None:
    """torch.compile would compile our functions too where they are called from compiled code: it must not, nor what they call."""
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    try:
        from torch._C._dynamo import eval_frame

        skip = eval_frame._FrameAction.SKIP
        eval_frame.set_code_exec_strategy(function.__code__, eval_frame._FrameExecStrategy(skip, skip))
    except (ImportError, AttributeError, TypeError):
        pass  # releases before 2.7 have another way; compiled modules are then slower to record


@functools.lru_cache(maxsize=None)
def _c10d() -> Any:
    """PyTorch's own module: asked for at every call, an import statement costs more than what it is for."""
    from torch._C import _distributed_c10d

    return _distributed_c10d


def work_of(returned: Any) -> Any:
    """The Work in what a collective returns; None for those that have none."""
    if returned is None:
        return None
    return _c10d().Work.unbox(returned[-1] if isinstance(returned, (tuple, list)) else returned)


def with_work(returned: Any, work: Any) -> Any:
    """The same, with another Work in it."""
    boxed = work.boxed()
    return (*returned[:-1], boxed) if isinstance(returned, (tuple, list)) else boxed


# PyTorch's Work of a future forgets what the collective failed with, and knows no timeout: who waits for one waits for the real one
# first. By the address of its Python half, which is held until the collective has succeeded.
_chained: dict[int, tuple[Any, Any]] = {}


@functools.lru_cache(maxsize=None)
def _hear_failures() -> None:
    """Have `Work.wait` of our chained ones fail as the real one does; once."""
    kind = _c10d().Work
    really = kind.wait

    @functools.wraps(really)
    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        known = _chained.get(id(self))
        if known is not None and known[0] is self:
            known[1].wait(*args, **kwargs)
            return really(self)
        return really(self, *args, **kwargs)

    kind.wait = wait


_BY_FUTURE = ("torch.autograd", "torch.autograd.graph", "torch.distributed.distributed_c10d")


def _goes_by_future() -> bool:
    """Whether the caller may wait for the call's future, which says what failed, instead of for its Work.

    DDP does in C++, below the engine of autograd, and its hooks may in Python. All others in C++ wait for the Work: functional
    collectives, compiled graphs, DDP's constructor.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    return frame is None or frame.f_globals.get("__name__") in _BY_FUTURE


_waiting: set[Any] = (
    set()
)  # C++ holds only its half of a Work: the Python half must not be collected before it is waited for


def then(work: Any, act: Callable[[Any], None]) -> Any:
    """A Work that is complete once `act(work)` has been done after the real one."""
    try:
        future = work.get_future()
    except RuntimeError:  # Gloo's point-to-point calls and its reduce-scatter have none
        future = None

    if future is not None and not _goes_by_future():
        # A Work of a future would hide from C++ what the collective failed with: whoever waits gets the real one. Gloo does what
        # was chained to its future before it lets anybody go on who waits for the Work.
        def note(done: Any) -> None:
            try:
                done.value()
            except Exception:  # whoever waits hears of it
                return
            act(work)

        future.then(note)
        return work
    if future is not None:

        def finish(done: Any) -> Any:
            value = done.value()  # raises what the collective failed with
            act(work)
            keys.append(-1)
            _chained.pop(keys[0], None)
            return value

        keys: list[int] = []  # where the chained one is known, and -1 behind or alone when all is done
        _hear_failures()
        chained = _c10d()._create_work_from_future(future.then(finish))
        keys.insert(0, id(chained))
        _chained[id(chained)] = chained, work
        if -1 in keys:  # by another thread, which may not have found it there yet
            _chained.pop(id(chained), None)
        return chained

    followed = _followed_class()(work, act)
    _waiting.add(followed)
    return followed


@functools.lru_cache(maxsize=None)
def _followed_class() -> Any:
    class Followed(_c10d().Work):  # type: ignore[misc]
        """Passes everything on to the real Work, and acts after the first wait."""

        def __init__(self, work: Any, act: Callable[[Any], None]) -> None:
            super().__init__()
            self._work, self._act = work, act
            self._is_done = False

        def wait(self, *timeout: Any) -> bool:
            limit = [one for one in timeout if one]  # zero says: none
            result = self._work.wait(*limit)
            _waiting.discard(self)
            if not self._is_done:
                self._is_done = True
                self._act(self._work)
            return bool(result)

        def is_completed(self) -> bool:
            return bool(self._work.is_completed())

        def is_success(self) -> bool:
            return bool(self._work.is_success())

        def exception(self) -> Any:
            return self._work.exception()

        def _source_rank(self) -> int:
            return int(self._work._source_rank())

        def source_rank(self) -> int:
            return int(self._work._source_rank())

        def __hash__(self) -> int:
            return id(self)

        def __eq__(self, other: object) -> bool:
            return self is other

    return Followed


def done_work(value: Any, source: int | None) -> Any:
    """A Work that is complete already, for a collective answered from a recording."""
    import torch

    if source is None:
        future: Any = torch.futures.Future()
        future.set_result(value)
        return _c10d()._create_work_from_future(future)

    class Received(_c10d().Work):  # type: ignore[misc]
        """A receive from anybody: it knows whom it came from."""

        def wait(self, *timeout: Any) -> bool:
            _waiting.discard(self)
            return True

        def is_completed(self) -> bool:
            return True

        def _source_rank(self) -> int:
            return int(source or 0)

    received = Received()
    _waiting.add(received)
    return received
