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
_FROM_ONE_TO_ONE = ("send", "recv_", "recv_any_source_")
_COPYING = ("broadcast_", "allgather_", "_allgather_base_", "send", "recv_")
_MOST_COMPARED = 300  # calls whose numbers are compared, beside those of steps that are looked at
_told = threading.local()


def hook(observer: Observer, module: ModuleType) -> None:
    """See every collective from the first group on; the kind of a reduction is known only in Python."""
    calls = Calls(observer)
    observer.parts["collectives"] = calls
    at_first_group(module, calls.begin)
    if observer.settings.spawns:
        wrap(module, "init_process_group", lambda really: _numbering(observer, module, really))
    for name in _REDUCING:
        if hasattr(module, name):
            wrap(module, name, _telling)


def _numbering(observer: Observer, module: ModuleType, really: Any) -> Any:
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        found = really(*args, **kwargs)
        with observer.guard:
            observer.write("rank", rank=module.get_rank(), size=module.get_world_size())
            observer.journal.flush()
        return found

    return init_process_group


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
        self._stamp = -1
        self._places: dict[int, str] = {}  # of parameters and gradients, by address; good until gradients come or go
        self._compared = 0
        self.made = 0  # collectives over all ranks so far: two ranks are at the same place where it is the same

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
        if len(group.members) == observer.settings.size and call.kind.name not in _FROM_ONE_TO_ONE:
            self.made += 1
        models = observer.parts.get("models")
        is_forward = models is not None and models.depth > 0
        is_asked_for = observer.is_looking or bool(getattr(_told, "op", ""))
        if observer.settings.sample and not is_asked_for and (is_forward or call.kind.reduces):
            return  # DDP's and FSDP's own: at steps that are not looked at they tell nothing
        given = call.given() or call.got()
        # Not of what DDP and FSDP call in C++: comparing numbers takes time.
        is_asked = bool(getattr(_told, "op", "")) or (call.kind.name in _COPYING and not is_forward)
        observer.note(
            "call",
            op=call.kind.name.strip("_"),
            red=getattr(_told, "op", ""),
            group=group.name,
            n=sum(int(one.numel()) for one in given),
            what=self._what(given, is_asked),
            forward=is_forward,
            line=line(),
        )

    def told_of(self, tensors: list[Any]) -> str:
        """What these tensors are, for calls that do not go through PyTorch."""
        return self._what(tensors, True)

    def _what(self, tensors: list[Any], is_asked: bool) -> str:
        """`grad` or `param` where the memory is that of one that an optimizer holds; `…-copy` where only the numbers are."""
        gradients = self.observer.parts.get("gradients")
        if gradients is None or not tensors:
            return ""
        first = tensors[0]
        if self._stamp != self.observer.stamp:
            self._stamp, self._places = self.observer.stamp, _places(gradients)
        if first.numel() and first.data_ptr() in self._places:
            return self._places[first.data_ptr()]
        if not is_asked or (self._compared > _MOST_COMPARED and not self.observer.is_looking):
            return ""
        self._compared += 1
        return self._copied(first, gradients)

    def _copied(self, tensor: Any, gradients: Any) -> str:
        """A tensor of its own, or a flat one, that begins or ends with the numbers of a gradient or a parameter, divided or not."""
        if tensor.numel() < 2 or not tensor.is_floating_point():
            return ""
        flat = tensor.detach().reshape(-1)
        for leaf in gradients.leaves.values():
            parameter = leaf.ref()
            if parameter is None or hasattr(parameter, "to_local") or not 1 < parameter.numel() <= flat.numel():
                continue
            ends = (flat[: parameter.numel()], flat[-parameter.numel() :])
            for what, other in (("grad-copy", parameter.grad), ("param-copy", parameter)):
                if other is not None and other.layout is flat.layout and any(_is_multiple(other, end) for end in ends):
                    return what
        return ""


def _is_multiple(one: Any, two: Any) -> bool:
    """Whether two tensors are the same up to a factor: what is averaged is often divided before it is summed."""
    import torch

    one, two = one.detach().reshape(-1).float(), two.float()
    sizes = float(torch.linalg.vector_norm(one) * torch.linalg.vector_norm(two))
    if not sizes > 0:
        return False
    # Of two numbers the angle says little: they must be equal, or half.
    if one.numel() < 4:
        return bool(torch.equal(one, two)) or bool(torch.equal(one / 2, two))
    return float(one @ two) / sizes > 1 - 1e-6


def _places(gradients: Any) -> dict[int, str]:
    import torch

    found: dict[int, str] = {}
    for leaf in gradients.leaves.values():
        parameter = leaf.ref()
        if parameter is None or hasattr(parameter, "to_local"):
            continue
        found[parameter.data_ptr()] = "param"
        if parameter.grad is not None and parameter.grad.layout is torch.strided:
            found[parameter.grad.data_ptr()] = "grad"
    return found
