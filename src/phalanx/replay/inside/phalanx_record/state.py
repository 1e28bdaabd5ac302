"""A rank's training state, found without a line in the script: the optimizers that step, the models whose parameters they hold.

What the optimizers hold is known; the models are found among the living objects: the outermost modules that contain those
parameters. `phalanx.checkpoint(model=…, optimizer=…)` says it where that finds the wrong ones, or none.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from . import chance
from .training import Training, followed

_told: dict[str, list[Any]] = {"model": [], "optimizer": []}
_found: dict[Any, list[weakref.ref[Any]]] = {}
LACKS = (
    "gradients that are not applied yet",
    "scalers of gradients, and averaged copies of models that no optimizer holds",
    "the script's own variables, which it makes again as it runs",
    "what other processes hold, such as workers of a data loader",
)


def told(model: Any = None, optimizer: Any = None, step: int | None = None) -> None:
    """The script says what its state is, and how many steps are done; holds only weak references."""
    for kind, given, needs in (("model", model, "named_parameters"), ("optimizer", optimizer, "param_groups")):
        known = [reference() for reference in _told[kind]]
        for one in given if isinstance(given, (list, tuple)) else [given]:
            if one is None or any(one is other for other in known):
                continue
            if not hasattr(one, needs):
                print(
                    f"phalanx: checkpoints do not hold this {kind}, which has no {needs}: {one!r}"[:300],
                    file=sys.stderr,
                )
                continue
            _told[kind].append(weakref.ref(one))
            _found.clear()
    if step is not None:
        for training in followed:
            training.count(int(step))


class State:
    """Everything to be kept at one moment: tensors by name, plain values by name, random states."""

    def __init__(self, step: int, tensors: dict[str, Any], values: dict[str, Any], shards: dict[str, Any]) -> None:
        self.step = step
        self.tensors = tensors  # local: of a sharded tensor the rank's own part
        self.values = values
        self.shards = shards  # name → shape of the whole and how it is cut, for those
        self.random = chance.states()

    def facts(self) -> dict[str, Any]:
        """What stands beside the tensors."""
        holds = sorted({name.split(".")[0] for name in (*self.tensors, *self.values)})
        return {
            "schema": "phalanx.checkpoint/1",
            "step": self.step,
            "values": self.values,
            "shards": self.shards,
            "random": self.random,
            "holds": [*holds, "random states of Python, NumPy and PyTorch"],
            "lacks": list(LACKS),
        }


def capture(training: Training) -> State | None:
    """The state as it is now, not copied; None where no optimizer has stepped yet."""
    tensors: dict[str, Any] = {}
    values: dict[str, Any] = {}
    shards: dict[str, Any] = {}
    optimizers = _optimizers(training)
    if not optimizers and not _told["model"]:
        return None
    for number, model in enumerate(_models(optimizers)):
        for name, tensor in _entries(model):
            _put(tensors, shards, f"model{number}.{name}", tensor)
    for number, optimizer in enumerate(optimizers):
        for key, value in _held_by(optimizer):
            name = f"optimizer{number}.{key}"
            if hasattr(value, "data_ptr"):
                _put(tensors, shards, name, value)
            elif _is_plain(value):
                values[name] = value
    for number, schedule in enumerate(_schedules(optimizers)):
        for key, value in vars(schedule).items():
            if _is_plain(value):
                values[f"schedule{number}.{key}"] = value
    return State(training.step, tensors, values, shards)


def _held_by(optimizer: Any) -> Iterator[tuple[str, Any]]:
    """What an optimizer keeps for each parameter and, in its groups, for all of them (a learning rate may be a tensor)."""
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    for place, parameter in enumerate(parameters):
        for key, value in sorted(optimizer.state.get(parameter, {}).items()):
            yield f"{place}.{key}", value
    for place, group in enumerate(optimizer.param_groups):
        for key, value in group.items():
            yield f"group{place}.{key}", value


def restore(training: Training, tensors: dict[str, Any], facts: dict[str, Any]) -> list[str]:
    """Set the state back; returns the names that found no place."""
    import torch

    left = set(tensors) | set(facts["values"])
    optimizers = _optimizers(training)
    with torch.no_grad():
        for number, model in enumerate(_models(optimizers)):
            for name, tensor in _entries(model):
                whole = f"model{number}.{name}"
                if whole in tensors:
                    _local(tensor).copy_(tensors[whole].view(_local(tensor).dtype).view(_local(tensor).shape))
                    left.discard(whole)
        for number, optimizer in enumerate(optimizers):
            left -= _restore_optimizer(optimizer, f"optimizer{number}", tensors, facts)
    for number, schedule in enumerate(_schedules(optimizers)):
        for key in list(vars(schedule)):
            if f"schedule{number}.{key}" in facts["values"]:
                before = getattr(schedule, key)
                setattr(schedule, key, _like(before, facts["values"][f"schedule{number}.{key}"]))
                left.discard(f"schedule{number}.{key}")
    chance.restore(facts["random"])
    return sorted(left)


def _restore_optimizer(optimizer: Any, prefix: str, tensors: dict[str, Any], facts: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    for place, parameter in enumerate(parameters):
        state = optimizer.state[parameter]
        for key in list(state):
            name = f"{prefix}.{place}.{key}"
            if name in tensors and hasattr(state[key], "data_ptr"):
                target = _local(state[key])
                target.copy_(tensors[name].view(target.dtype).view(target.shape))
            elif name in facts["values"]:
                state[key] = _like(state[key], facts["values"][name])
            else:
                continue
            found.add(name)
    for place, group in enumerate(optimizer.param_groups):
        for key in list(group):
            name = f"{prefix}.group{place}.{key}"
            if name in tensors and hasattr(group[key], "data_ptr"):
                group[key].copy_(tensors[name].view(group[key].dtype).view(group[key].shape))
            elif name in facts["values"]:
                group[key] = _like(group[key], facts["values"][name])
            else:
                continue
            found.add(name)
    return found


def _is_plain(value: Any) -> bool:
    """A number, or several: a schedule may move the betas of Adam, which are a pair."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(one, (int, float)) for one in value)
    return isinstance(value, (int, float))


def _like(before: Any, value: Any) -> Any:
    """JSON knows no tuples."""
    return tuple(value) if isinstance(before, tuple) and isinstance(value, list) else value


def _put(tensors: dict[str, Any], shards: dict[str, Any], name: str, tensor: Any) -> None:
    if hasattr(tensor, "to_local"):
        shards[name] = {"shape": list(tensor.shape), "placements": [str(one) for one in tensor.placements]}
    tensors[name] = _local(tensor).detach()


def _local(tensor: Any) -> Any:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _entries(model: Any) -> list[tuple[str, Any]]:
    return [*model.named_parameters(), *model.named_buffers()]


def _optimizers(training: Training) -> list[Any]:
    given = [one for reference in _told["optimizer"] if (one := reference()) is not None]
    return given or [one for reference in training.optimizers if (one := reference()) is not None]


def _models(optimizers: list[Any]) -> list[Any]:
    return _remembered("models", optimizers, _find_models)


def _find_models(optimizers: list[Any]) -> list[Any]:
    """The outermost modules that hold the optimizers' parameters, in the order of these."""
    import torch

    given = [one for reference in _told["model"] if (one := reference()) is not None]
    if given:
        return given
    order = {
        id(parameter): place
        for place, parameter in enumerate(
            parameter for optimizer in optimizers for group in optimizer.param_groups for parameter in group["params"]
        )
    }
    modules = _living(torch.nn.Module)
    inner = {id(child) for module in modules for child in module.children()}
    found = []
    for module in modules:
        if id(module) not in inner:
            places = [order[id(parameter)] for parameter in module.parameters() if id(parameter) in order]
            if places:
                found.append((min(places), type(module).__name__, module))
    return [module for _, _, module in sorted(found, key=lambda one: one[:2])]


def _schedules(optimizers: list[Any]) -> list[Any]:
    return _remembered("schedules", optimizers, _find_schedules)


def _find_schedules(optimizers: list[Any]) -> list[Any]:
    from torch.optim.lr_scheduler import LRScheduler

    ours = {id(optimizer) for optimizer in optimizers}
    found = [one for one in _living(LRScheduler) if id(getattr(one, "optimizer", None)) in ours]
    return sorted(found, key=lambda one: type(one).__name__)


def _living(kind: type) -> list[Any]:
    """All objects of a class. By their type alone: isinstance() would wake objects that warn of their own age."""
    return [one for one in gc.get_objects() if issubclass(type(one), kind)]


def _remembered(key: str, optimizers: list[Any], find: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """What was found for these optimizers before, if all of it still lives: looking through all objects takes a while."""
    mark = (key, *map(id, optimizers))
    known = [reference() for reference in _found.get(mark, ())]
    if mark in _found and all(one is not None for one in known):
        return known
    fresh = find(optimizers)
    _found[mark] = [weakref.ref(one) for one in fresh]
    return fresh
