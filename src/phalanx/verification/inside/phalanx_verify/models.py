"""The models: which modules are called as a whole, in which mode, wrapped by what, and what their parameters are called."""

from __future__ import annotations

import weakref
from typing import Any

from .chance import random_state
from .lines import line
from .marks import mark_of
from .observer import Observer, wrap
from .sketches import sketch

_MOST_UNHELD = 400  # parameters of a model
_MOST_BUFFERS = 100
_MOST_OUTSIDE = 400  # forward passes without gradients that are told one by one


class Model:
    """A module that is called as a whole, or wrapped."""

    def __init__(self, number: int, module: Any, kind: str) -> None:
        self.number, self.kind = number, kind
        self.ref = weakref.ref(module)
        self.dropouts: list[Any] | None = None
        self.weighed: tuple[int, list[float] | None] = (-1, None)  # the step after which its weights were last sketched


class Models:
    """All that were seen."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.known: dict[int, Model] = {}
        self.depth = 0
        self.outside = 0
        self._last: Model | None = None
        self.with_gradients = False  # a pass that is looked at and is to have gradients is under way
        self._shut: set[int] = set()  # modules whose call without gradients was told

    def shut(self, module: Any) -> None:
        """A part is called without gradients inside of a pass that has them."""
        if id(module) in self._shut or len(self._shut) >= _MOST_UNHELD:
            return
        self._shut.add(id(module))
        own = [one for one in module.parameters(recurse=False) if one.requires_grad]
        where = {id(one) for one in own}
        names = {place: name for place, name in self.names().items() if place in where} if own else {}
        if names:
            model = next(iter(names.values()))[0]
            self.observer.write("shut", m=model, names=sorted(name for _, name in names.values()), line=line())

    def of(self, module: Any, kind: str = "") -> Model:
        """The model that this module is; told to the journal when it is new."""
        known = self.known.get(id(module))
        if known is not None and known.ref() is module:
            return known
        model = Model(len(self.known), module, kind or _kind(module))
        self.known[id(module)] = model
        inside = self._wrapper_of(module)
        self.observer.write(
            "model",
            m=model.number,
            kind=model.kind,
            cls=type(module).__name__,
            line=line(),
            inside=inside,
            layers=_layers(module),
        )
        return model

    def _wrapper_of(self, module: Any) -> int | None:
        """The number of the wrapper that this module lies in: calling it then goes past the wrapper."""
        for one in self.known.values():
            outer = one.ref()
            if outer is None or outer is module or one.kind not in ("ddp", "fsdp1"):
                continue
            if any(part is module for part in outer.modules()):
                return one.number
        return None

    def wrapped(self) -> list[Any]:
        """Living DDP models."""
        found = (one.ref() for one in self.known.values() if one.kind == "ddp")
        return [one for one in found if one is not None]

    def holds_back(self) -> bool:
        """Whether FSDP2 was told not to reduce gradients in this backward pass, in all parts of all its models."""
        found: list[bool] = []
        for module in [one.ref() for one in self.known.values()]:
            for part in module.modules() if module is not None else ():
                state = part._get_fsdp_state() if hasattr(part, "_get_fsdp_state") else None
                groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
                found += [not bool(one.reduce_grads) for one in groups if hasattr(one, "reduce_grads")]
        return bool(found) and all(found)

    def names(self) -> dict[int, tuple[int, str]]:
        """By a parameter's id: the number of its model and its name there; wrapped models first, large before small."""
        found: dict[int, tuple[int, str]] = {}
        living = [(one, one.ref()) for one in self.known.values()]
        order = sorted(
            ((one, module) for one, module in living if module is not None),
            key=lambda pair: (pair[0].kind == "module", -sum(1 for _ in pair[1].parameters())),
        )
        for one, module in order:
            inner = module.module if one.kind == "ddp" else module
            for name, parameter in inner.named_parameters(remove_duplicate=False):
                found.setdefault(
                    id(parameter), (one.number, name.replace("_fsdp_wrapped_module.", "").replace("_orig_mod.", ""))
                )
        return found

    def entered(self, module: Any, args: Any, kwargs: Any) -> None:
        """A module is called as a whole."""
        import torch

        observer = self.observer
        model = self.of(module)
        self._last = model
        has_grad = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        # Lightning puts the wrapped module back into training mode after an evaluation, and not its wrapper.
        training = bool((module.module if model.kind in ("ddp", "fsdp1") else module).training)
        if has_grad and (observer.is_looking or not training):
            fields: dict[str, Any] = {"m": model.number, "training": training, "line": line()}
            if observer.is_looking:
                fields |= {"mark": mark_of((args, kwargs)), "rng": random_state(), "dropout": _drops(module, model)}
                fields |= {"syncs": bool(module.require_backward_grad_sync)} if model.kind == "ddp" else {}
            observer.note("forward", **fields)
            self.with_gradients = observer.is_looking
        elif not has_grad and self.outside < (8 if observer.settings.sample else _MOST_OUTSIDE):
            self.outside += 1
            observer.write(
                "eval",
                m=model.number,
                training=training,
                line=line(),
                mark=mark_of((args, kwargs)),
                layers=_layers(module),
                weights=None if observer.settings.sample else self._weights(model, module),
            )

    def _weights(self, model: Model, module: Any) -> list[float] | None:
        """One fingerprint of all whole parameters; sketched once between two steps."""
        if model.weighed[0] != self.observer.step:
            found = [sketch(one) for one in module.parameters() if not hasattr(one, "to_local") and one.numel() > 0]
            known = [one for one in found if one is not None]
            # A place in the order counts: the same values in another order are other weights.
            total = [sum(one[axis] * (1 + place % 7) for place, one in enumerate(known)) for axis in (0, 1)]
            norm = sum(one[2] ** 2 for one in known) ** 0.5
            model.weighed = self.observer.step, [*total, norm] if known else None
        return model.weighed[1]

    def unheld(self, held: set[int]) -> list[list[Any]]:
        """Trainable parameters of called models that have a gradient and that no optimizer holds: model, name, fingerprint."""
        found: list[list[Any]] = []
        for one in self.known.values():
            module = one.ref()
            if module is None or one.kind not in ("ddp", "module") or any(row[0] == one.number for row in found):
                continue
            inner = module.module if one.kind == "ddp" else module
            rows = [
                [one.number, name, sketch(parameter)]
                for name, parameter in inner.named_parameters()
                if id(parameter) not in held and parameter.requires_grad and parameter.grad is not None
            ]
            found += rows[:_MOST_UNHELD]
        return found

    def buffers(self) -> list[list[Any]]:
        """Buffers of called models that no layer keeps as statistics of its batches: model, name, fingerprint."""
        found: dict[int, list[Any]] = {}
        for one in self.known.values():
            module = one.ref()
            if module is None or one.kind not in ("ddp", "module"):
                continue
            inner = module.module if one.kind == "ddp" else module
            for path, part in inner.named_modules():
                if hasattr(part, "running_mean"):
                    continue
                for name, buffer in part.named_buffers(recurse=False):
                    if buffer.is_floating_point() and id(buffer) not in found and len(found) < _MOST_BUFFERS:
                        found[id(buffer)] = [one.number, f"{path}.{name}".lstrip("."), sketch(buffer)]
        return list(found.values())


def _kind(module: Any) -> str:
    for kind in type(module).__mro__:
        if kind.__name__ == "DistributedDataParallel":
            return "ddp"
        if kind.__name__ == "FullyShardedDataParallel":
            return "fsdp1"
        if kind.__name__ == "FSDPModule":
            return "fsdp2"
    return "module"


def _drops(module: Any, model: Model) -> bool:
    """Whether something in it drops elements at random now: a part that is kept in evaluation mode does not."""
    if model.dropouts is None:
        model.dropouts = [
            part for part in module.modules() if "Dropout" in type(part).__name__ and bool(getattr(part, "p", False))
        ]
    return any(part.training for part in model.dropouts)


def _layers(module: Any) -> list[str]:
    """What behaves otherwise in evaluation."""
    found = {type(part).__name__ for part in module.modules()}
    return sorted(name for name in found if "Dropout" in name or "BatchNorm" in name)


def hook(observer: Observer) -> None:
    """See every call of a module from outside of any other, and every DDP that is made."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    models = observer.parts["models"] = Models(observer)

    def call_of(really: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if models.depth or observer.is_broken or torch.compiler.is_compiling():
                if models.with_gradients and not torch.is_grad_enabled():
                    with observer.guard:
                        models.shut(self)
                return really(self, *args, **kwargs)
            with observer.guard:
                models.entered(self, args, kwargs)
            models.depth += 1
            try:
                return really(self, *args, **kwargs)
            finally:
                models.depth -= 1
                models.with_gradients = False

        return call

    def init_of(really: Any) -> Any:
        def construct(self: Any, *args: Any, **kwargs: Any) -> None:
            really(self, *args, **kwargs)
            with observer.guard:
                _describe(observer, models, self)

        return construct

    wrap(torch.nn.Module, "__call__", call_of)
    wrap(DistributedDataParallel, "__init__", init_of)


def _describe(observer: Observer, models: Models, model: Any) -> None:
    import torch.distributed as distributed

    made = models.of(model, "ddp")
    observer.write(
        "wrapped",
        m=made.number,
        line=line(),
        members=[int(one) for one in distributed.get_process_group_ranks(model.process_group)],
        parameters=[name for name, one in model.module.named_parameters() if one.requires_grad],
        ignored=sorted(str(name) for name in getattr(model, "parameters_to_ignore", ())),
        find_unused=bool(model.find_unused_parameters),
        broadcast_buffers=bool(model.broadcast_buffers),
    )
