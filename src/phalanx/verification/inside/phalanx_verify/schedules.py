"""Learning-rate schedulers: what they are made for, and how often they step for each step of their optimizer."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from .lines import caller, line
from .observer import Observer, wrap

_HORIZONS = ("T_max", "total_steps", "total_iters", "step_size", "T_0", "gamma", "milestones")


class Schedulers:
    """Numbers for them, in the order of their making."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._numbers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.depth = 0

    def made(self, scheduler: Any) -> None:
        number = len(self._numbers)
        self._numbers[id(scheduler)] = weakref.ref(scheduler), number
        optimizer = getattr(scheduler, "optimizer", None)
        held = self.observer.parts["optimizers"].number_of(optimizer) if optimizer is not None else None
        told = {name: _plain(getattr(scheduler, name)) for name in _HORIZONS if hasattr(scheduler, name)}
        told |= _horizon_in_lambda(scheduler)
        self.observer.write("scheduler", s=number, cls=type(scheduler).__name__, o=held, line=line(), told=told)

    def stepped(self, scheduler: Any) -> None:
        known = self._numbers.get(id(scheduler))
        if known is not None and known[0]() is scheduler:
            self.observer.note(
                "schedule", s=known[1], at=getattr(scheduler, "last_epoch", None), line=line(), by=caller()
            )


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else sorted(value) if isinstance(value, dict) else str(value)[:80]


def _horizon_in_lambda(scheduler: Any) -> dict[str, Any]:
    """`num_training_steps` and the like, bound into a lambda, as Transformers does."""
    found: dict[str, Any] = {}
    for function in getattr(scheduler, "lr_lambdas", None) or ():
        if isinstance(function, functools.partial):
            found |= {name: value for name, value in function.keywords.items() if isinstance(value, (int, float))}
    return found


def hook(observer: Observer) -> None:
    """See schedulers made and stepped."""
    from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

    schedulers = observer.parts["schedulers"] = Schedulers(observer)

    def init_of(really: Any) -> Any:
        def construct(self: Any, *args: Any, **kwargs: Any) -> None:
            schedulers.depth += 1
            try:
                really(self, *args, **kwargs)
            finally:
                schedulers.depth -= 1
            with observer.guard:
                schedulers.made(self)
                _follow(observer, schedulers, type(self))

        return construct

    for kind in (LRScheduler, ReduceLROnPlateau):
        if "__init__" in vars(kind):
            wrap(kind, "__init__", init_of)


_followed: set[type] = set()


def _follow(observer: Observer, schedulers: Schedulers, kind: type) -> None:
    """A class may have a step of its own, which need not call its parent's: the class that has it is followed, once."""
    owner = next((one for one in kind.__mro__ if "step" in vars(one)), None)
    if owner is None or owner in _followed:
        return
    _followed.add(owner)

    def make(really: Any) -> Any:
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            schedulers.depth += 1
            try:
                result = really(self, *args, **kwargs)
            finally:
                schedulers.depth -= 1
            if schedulers.depth == 0:  # not the first step that the constructor makes, nor one within a chain
                with observer.guard:
                    schedulers.stepped(self)
            return result

        return step

    wrap(owner, "step", make)
