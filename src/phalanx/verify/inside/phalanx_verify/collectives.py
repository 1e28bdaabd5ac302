"""Collectives: over which group, by which operation, and whether gradients, parameters or something else was handed in."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

from phalanx_record.arrival import at_first_group
from phalanx_record.calls import Call, Operation
from phalanx_record.dispatch import Forward, stand_between

from .lines import line
from .observer import Observer, wrap

_REDUCING = (
    "all_reduce",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "_reduce_scatter_base",
    "all_reduce_coalesced",
)
_told = threading.local()


def hook(observer: Observer, module: ModuleType) -> None:
    """See every collective from the first group on; the kind of a reduction is known only in Python."""
    calls = Calls(observer)
    observer.parts["collectives"] = calls
    at_first_group(module, calls.begin)
    for name in _REDUCING:
        if hasattr(module, name):
            wrap(module, name, _telling)


def _telling(really: Any) -> Any:
    def reduce(*args: Any, **kwargs: Any) -> Any:
        op = kwargs.get("op", next((one for one in args if type(one).__name__ in ("RedOpType", "ReduceOp")), None))
        _told.op = str(getattr(op, "name", op)).rpartition(".")[2] if op is not None else "SUM"
        try:
            return really(*args, **kwargs)
        finally:
            _told.op = ""

    return reduce


class Calls:
    """Tells each call to the observer, then lets it happen."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._groups: set[str] = set()

    def begin(self) -> None:
        """The first group is made."""
        self.observer.write("init", line=line())
        stand_between(self.handle)

    def handle(self, operation: Operation, args: tuple[Any, ...], forward: Forward) -> Any:
        """One call. Fields: op, red (empty in C++), group, count, elements, what, line."""
        if not self.observer.is_broken:
            with self.observer.guard:
                self._note(Call(operation, args))
        return forward()

    def _note(self, call: Call) -> None:
        observer, group = self.observer, call.group
        if group.name not in self._groups:
            self._groups.add(group.name)
            observer.write("group", name=group.name, members=list(group.members), words=group.words)
        given = call.given() or call.got()
        observer.note(
            "call",
            op=call.kind.name.strip("_"),
            red=getattr(_told, "op", ""),
            group=group.name,
            n=sum(int(one.numel()) for one in given),
            what=self._what(given),
            forward=self.observer.parts["models"].depth > 0,
            line=line(),
        )

    def _what(self, tensors: list[Any]) -> str:
        """`grad` or `param` where the memory is that of one that an optimizer holds; `…-copy` where only the numbers are."""
        gradients = self.observer.parts.get("gradients")
        if gradients is None or not tensors:
            return ""
        first = tensors[0]
        places = {}
        for leaf in gradients.leaves.values():
            parameter = leaf.ref()
            if parameter is not None and not hasattr(parameter, "to_local"):
                places[parameter.data_ptr()] = "param"
                if parameter.grad is not None and parameter.grad.layout is first.layout:
                    places[parameter.grad.data_ptr()] = "grad"
        if first.numel() and first.data_ptr() in places:
            return places[first.data_ptr()]
        return self._copied(first, gradients)

    def _copied(self, tensor: Any, gradients: Any) -> str:
        """A tensor of its own, or a flat one, that begins with the numbers of a gradient or a parameter."""
        import torch

        if tensor.numel() < 2 or not tensor.is_floating_point():
            return ""
        flat = tensor.detach().reshape(-1)
        for leaf in gradients.leaves.values():
            parameter = leaf.ref()
            if parameter is None or hasattr(parameter, "to_local") or parameter.numel() > flat.numel():
                continue
            beginning = flat[: parameter.numel()]
            for what, other in (("grad-copy", parameter.grad), ("param-copy", parameter)):
                if other is not None and other.layout is flat.layout and bool(torch.any(other)):
                    other = other.detach().reshape(-1)
                    if torch.equal(other.to(beginning.dtype), beginning):
                        return what
                    if what == "param-copy" and torch.equal(other, flat[-parameter.numel() :]):
                        return what
        return ""
