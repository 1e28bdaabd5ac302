"""Brings an unchanged script to a later step without computing the steps before it.

The script has to run its loop: only so its own variables, its epochs and its loaders come to stand where they stood. But what it
computes on the way is not needed, because the state is set to the checkpoint's afterwards. So operations on tensors are passed
over: their results have the right shapes and are zeros. Data loading is done as ever, with the recorded random states, because
the order of samples must come out right.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .calls import Call

_REAL = (
    "_local_scalar_dense",
    "equal",
    "is_nonzero",
    "lift_fresh",
    "detach",
    "resize_",
    "set_",
    "_resize_output_",
    "item",
)


class Skipping:
    """Passes over all computation from the first module that is called in a step to the optimizer's step.

    The optimizer steps really: its state comes to be by it, and its arithmetic on numbers would trip over zeros.
    """

    def __init__(self, until: int) -> None:
        self.until = until
        self.is_on = until > 0
        self._mode: Any = None
        self._hooks: list[Any] = []

    def begin(self) -> None:
        """Watch for modules being called."""
        if not self.is_on:
            return
        from torch.nn.modules.module import register_module_forward_pre_hook
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        self._hooks = [
            register_module_forward_pre_hook(self._enter),
            register_optimizer_step_pre_hook(lambda *_: self._leave()),
        ]

    def _enter(self, module: Any, args: Any) -> None:
        if self.is_on and self._mode is None:
            self._mode = _make_mode()
            self._mode.__enter__()

    def _leave(self) -> None:
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None

    def stepped(self, step: int) -> bool:
        """A step is over; whether it was the last to be passed over."""
        if not self.is_on:
            return False
        self._leave()
        if step < self.until:
            return False
        self.is_on = False
        for hook in self._hooks:
            hook.remove()
        return True

    @contextlib.contextmanager
    def really(self) -> Iterator[None]:
        """In here everything is computed: for loaders that are asked while a step is being passed over."""
        if self._mode is None:
            yield
            return
        from torch.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes():
            yield


def plausible(call: Call) -> None:
    """Fill a result that nobody kept, as if all members had given what this rank gives."""
    given, got = call.given(), call.got()
    name = call.kind.name
    if "allgather" in name and given:
        for place, tensor in enumerate(got):
            source = given[place % len(given)]
            flat = source.detach().reshape(-1)
            tensor.detach().copy_(
                flat.repeat(-(-tensor.numel() // max(flat.numel(), 1)))[: tensor.numel()].view(tensor.shape)
            )
    elif given and given[0] is not got[0] if got else False:
        for tensor in got:
            flat = given[0].detach().reshape(-1)
            if flat.numel() >= tensor.numel() and flat.dtype == tensor.dtype:
                tensor.detach().copy_(flat[: tensor.numel()].view(tensor.shape))
            else:
                tensor.detach().zero_()
    elif name.startswith("recv"):
        for tensor in got:
            tensor.detach().zero_()


def _make_mode() -> Any:
    import torch
    from torch.utils import _pytree as tree
    from torch.utils._python_dispatch import TorchDispatchMode

    plain = (torch.Tensor, torch.nn.Parameter)

    class PassOver(TorchDispatchMode):  # type: ignore[misc]
        """Answers operations with zeros of the right shape."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            tensors = [one for one in tree.tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
            is_known = func.namespace == "aten" and not func.is_view and func._schema.name[6:] not in _REAL
            if not is_known or not tensors or any(type(one) not in plain for one in tensors):
                return func(*args, **kwargs)
            if func._schema.is_mutable:
                return _aliased(func, args, kwargs)
            return _shaped(func, args, kwargs, tensors[0].device)

    def _aliased(func: Any, args: Any, kwargs: Any) -> Any:
        """What an operation in place returns: the very tensors that it would have changed."""
        schema = func._schema
        named = {argument.name: value for argument, value in zip(schema.arguments, args)} | kwargs
        found = []
        for returned in schema.returns:
            alias = returned.alias_info
            match = next(
                (
                    named[argument.name]
                    for argument in schema.arguments
                    if alias is not None
                    and argument.alias_info is not None
                    and argument.name in named
                    and argument.alias_info.before_set == alias.before_set
                ),
                None,
            )
            if match is None:
                return func(*args, **kwargs)
            found.append(match)
        return None if not found else found[0] if len(found) == 1 else tuple(found)

    def _shaped(func: Any, args: Any, kwargs: Any, device: Any) -> Any:
        def hollow(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
            return torch.device("meta") if isinstance(value, torch.device) else value

        def filled(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device).zero_()
            return value

        try:
            shapes = func(*tree.tree_map(hollow, args), **tree.tree_map(hollow, kwargs))
        except Exception:  # no rule for its shape, or one that depends on the values: then it is computed
            return func(*args, **kwargs)
        return tree.tree_map(filled, shapes)

    return PassOver()


def wrap_loaders(skipping: Skipping) -> None:
    """Have data loaders work really while steps are passed over."""
    from torch.utils.data import dataloader

    def real(act: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any, **kwargs: Any) -> Any:
            with skipping.really():
                return act(*args, **kwargs)

        return inner

    dataloader.DataLoader.__iter__ = real(dataloader.DataLoader.__iter__)
    dataloader._BaseDataLoaderIter.__next__ = real(dataloader._BaseDataLoaderIter.__next__)
