"""Optimizers: what they hold, and at each step the fingerprints of parameters, gradients and their own state."""

from __future__ import annotations

import weakref
from typing import Any

from .lines import line
from .observer import Observer, wrap
from .sketches import local, sketch

_HYPER = ("weight_decay", "momentum", "betas", "eps", "nesterov", "maximize")


class Held:
    """One optimizer."""

    def __init__(self, number: int, optimizer: Any, where: str) -> None:
        self.number, self.where = number, where
        self.ref = weakref.ref(optimizer)
        self.steps = 0
        self.told: list[Any] = []  # its parameters when they were last told
        self.models, self.is_named = (
            0,
            False,
        )  # how many models were known then, and whether all its parameters lie in one
        self.before: dict[str, Any] = {}

    def parameters(self) -> list[Any]:
        """All parameters, in the order of the groups."""
        optimizer = self.ref()
        return [one for group in optimizer.param_groups for one in group["params"]] if optimizer is not None else []


class Optimizers:
    """All that were made or have stepped."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.calls = 0
        self._held: dict[int, Held] = {}
        self._count = 0
        self._depth = 0
        self._outermost: Any = None
        self._in_pass: set[int] = set()

    def made(self, optimizer: Any) -> Held:
        held = self._held[id(optimizer)] = Held(self._count, optimizer, line())
        self._count += 1
        self.follow(held)
        return held

    def follow(self, held: Held) -> None:
        for one in held.parameters():
            self.observer.parts["gradients"].follow(one)

    def of(self, optimizer: Any) -> Held:
        known = self._held.get(id(optimizer))
        return known if known is not None and known.ref() is optimizer else self.made(optimizer)

    def number_of(self, optimizer: Any) -> int | None:
        """The number of an optimizer, or of the one that a wrapper holds."""
        inner = getattr(optimizer, "optimizer", optimizer)
        known = self._held.get(id(inner)) or self._held.get(id(optimizer))
        return known.number if known is not None else None

    def stepping(self, optimizer: Any, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        """Before a step. A wrapper's step calls the real one: only the outermost counts. Returns other arguments, or None."""
        self._depth += 1
        self.calls += 1
        if self.observer.is_broken or (self._depth > 1 and self._outermost is not optimizer):
            return None
        with self.observer.guard:
            # Horovod's step waits for the reduction and calls its parent's: what the inner one finds is what is used.
            self._outermost = optimizer
            held = self.of(optimizer)
            held.before = {"lr": [_number(group.get("lr")) for group in optimizer.param_groups], "line": line()}
            if self.observer.is_looking:
                self.follow(held)
                self._tell(held, optimizer)
                held.before |= {"state_before": _states(optimizer, held) if held.steps == 0 else None}
                closure = next((one for one in (*args[1:], *kwargs.values()) if callable(one)), None)
                if closure is not None:
                    seen = self._seeing(held, closure)
                    given = tuple(seen if one is closure else one for one in args)
                    return given, {name: seen if one is closure else one for name, one in kwargs.items()}
                held.before |= self._look(held)
        return None

    def _seeing(self, held: Held, closure: Any) -> Any:
        """Gradients come in the closure (Lightning): what they are is looked at behind its first call; behind a second nothing fits."""
        calls = 0

        def seen(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            result = closure(*args, **kwargs)
            calls += 1
            with self.observer.guard:
                if calls == 1:
                    held.before |= self._look(held)
                held.before |= {"closure": calls > 1}
            return result

        return seen

    def stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """After it."""
        self._depth = max(0, self._depth - 1)
        self._outermost = self._outermost if self._depth else None
        if self._depth or self.observer.is_broken:
            return
        with self.observer.guard:
            held = self.of(optimizer)
            fields = held.before | {"events": self.observer.taken()}
            calls = self.observer.parts.get("collectives")
            fields |= {"made": calls.made if calls is not None else 0}
            if self.observer.is_looking and "before" in fields:
                fields |= {"after": [sketch(one) for one in held.parameters()], "state": _states(optimizer, held)}
            self._finish(held, fields)

    def skipped(self, optimizer: Any) -> None:
        """A loss scaler left a step out."""
        held = self.of(optimizer)
        self._finish(held, {"skipped": True, "line": line(), "events": self.observer.taken()})

    def _finish(self, held: Held, fields: dict[str, Any]) -> None:
        self.observer.write("step", o=held.number, n=held.steps, **fields)
        held.before = {}
        held.steps += 1
        gradients, looks_at = self.observer.parts["gradients"], self.observer.settings.looks_at
        if looks_at(self.observer.step) or looks_at(self.observer.step + 1):  # who looks must know what was left there
            for one in held.parameters():
                leaf = gradients.of(one)
                if leaf is not None:
                    leaf.used()
        if self._in_pass and held.number not in self._in_pass:
            self._in_pass.add(held.number)  # several optimizers in one pass count once
            return
        self._in_pass = {held.number}
        self.observer.finish_step()
        gradients.listen(self.observer.is_looking)

    def _tell(self, held: Held, optimizer: Any) -> None:
        """What it holds, when that is new: names are known once the model has been called."""
        parameters = held.parameters()
        models = self.observer.parts["models"]
        is_known = len(parameters) == len(held.told) and all(one() is two for one, two in zip(held.told, parameters))
        if is_known and (held.is_named or len(models.known) == held.models):
            return
        held.told, held.models = [weakref.ref(one) for one in parameters], len(models.known)
        names = models.names()
        held.is_named = all(id(one) in names for one in parameters)
        groups = [place for place, group in enumerate(optimizer.param_groups) for _ in group["params"]]
        rows = [[*(names.get(id(one)) or (_nowhere(one), f"#{place}")), list(one.shape), str(one.dtype).split(".")[-1],
                 bool(one.requires_grad), groups[place], _shard(one)] for place, one in enumerate(parameters)]  # fmt: skip
        hyper = [{name: _plain(group[name]) for name in _HYPER if name in group} for group in optimizer.param_groups]
        self.observer.write(
            "optimizer", o=held.number, cls=type(optimizer).__name__, line=held.where, parameters=rows, hyper=hyper
        )

    def _look(self, held: Held) -> dict[str, Any]:
        gradients = self.observer.parts["gradients"]
        parameters = held.parameters()
        leaves = [gradients.of(one) for one in parameters]
        return {
            "before": [sketch(one) for one in parameters],
            "grad": [sketch(one.grad) if one.grad is not None else None for one in parameters],
            "own": [leaf.own if leaf is not None else None for leaf in leaves],
            "times": [leaf.times if leaf is not None else 0 for leaf in leaves],
            "carried": [int(leaf.is_carried) if leaf is not None else 0 for leaf in leaves],
            "unheld": self.observer.parts["models"].unheld(self._all()),
            "buffers": self.observer.parts["models"].buffers(),
        }

    def _all(self) -> set[int]:
        """The parameters of all optimizers."""
        return {id(parameter) for held in self._held.values() for parameter in held.parameters()}


def _states(optimizer: Any, held: Held) -> list[list[list[float] | float | None]]:
    """Of each parameter the fingerprints of its state's tensors, by the order of their names."""
    found = []
    for one in held.parameters():
        state = optimizer.state.get(one, {})
        found.append(
            [
                sketch(state[key]) if hasattr(state[key], "layout") else _number(state[key])
                for key in sorted(state, key=str)
            ]
        )
    return found


def _shard(parameter: Any) -> Any:
    """Of a distributed tensor: where this rank's part lies, along the dimensions that are not copies; None for a plain one."""
    if getattr(parameter, "_is_flat_param", False) or type(parameter).__name__ == "FlatParameter":
        return "flat"
    mesh = getattr(parameter, "device_mesh", None)
    if mesh is None:
        return None
    where = mesh.get_coordinate() or []
    split = [int(place) for place, kind in zip(where, parameter.placements) if not kind.is_replicate()]
    return [split, list(local(parameter).shape), sorted(int(one) for one in mesh.mesh.flatten().tolist())]


def _nowhere(parameter: Any) -> int | None:
    """-1 for what still lies in a module or a variable, though in none that was called; None for what lies nowhere else."""
    import gc

    held = (one for one in gc.get_referrers(parameter) if isinstance(one, dict))
    return -1 if any(value is parameter for one in held for value in list(one.values())) else None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _plain(value: Any) -> Any:
    return (
        [float(one) for one in value]
        if isinstance(value, (list, tuple))
        else float(value)
        if value is not None
        else None
    )


def hook(observer: Observer) -> None:
    """See optimizers made, extended and stepped."""
    from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    optimizers = observer.parts["optimizers"] = Optimizers(observer)

    def init_of(really: Any) -> Any:
        def construct(self: Any, *args: Any, **kwargs: Any) -> None:
            really(self, *args, **kwargs)
            with observer.guard:
                optimizers.of(self)

        return construct

    wrap(Optimizer, "__init__", init_of)
    register_optimizer_step_pre_hook(optimizers.stepping)
    register_optimizer_step_post_hook(optimizers.stepped)
