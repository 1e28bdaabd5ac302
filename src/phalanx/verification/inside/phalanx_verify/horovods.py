"""Horovod: what the script itself hands to its collectives, and when the optimizer waits for its own."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .lines import line
from .observer import Observer, wrap

# The blocking calls, which scripts use. The optimizer starts others while the backward pass runs: they count when it waits for them.
_CALLS = {
    "allreduce": "allreduce",
    "allreduce_": "allreduce",
    "allgather": "allgather",
    "broadcast": "broadcast",
    "broadcast_": "broadcast",
}


def hook_calls(observer: Observer, module: ModuleType) -> None:
    """See the script's collectives."""

    def make(op: str) -> Any:
        def make_one(really: Any) -> Any:
            def call(tensor: Any, *args: Any, **kwargs: Any) -> Any:
                with observer.guard:
                    calls = observer.parts.get("collectives")
                    what = calls.told_of([tensor]) if calls is not None else ""
                    _note(observer, op, int(tensor.numel()), what)
                return really(tensor, *args, **kwargs)

            return call

        return make_one

    for name, op in _CALLS.items():
        if hasattr(module, name):
            wrap(module, name, make(op))


def hook_optimizer(observer: Observer, module: ModuleType) -> None:
    """See the optimizer wait for its reductions: from then on the gradients are those of all ranks."""

    def make(really: Any) -> Any:
        def synchronize(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = really(self, *args, **kwargs)
            with observer.guard:
                _note(observer, "allreduce", 0, "grad")
            return result

        return synchronize

    wrap(module._DistributedOptimizer, "synchronize", make)


def _note(observer: Observer, op: str, count: int, what: str) -> None:
    observer.note("call", op=op, red="", group="horovod", n=count, what=what, forward=False, line=line())
