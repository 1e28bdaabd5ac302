"""What each rank's own backward passes add to its gradients, before anybody reduces them; and clearing and clipping."""

from __future__ import annotations

import weakref
from typing import Any

from .lines import line
from .losses import composition
from .observer import Observer, wrap
from .sketches import sketch


class Leaf:
    """One parameter: the sum of what backward passes brought since its gradient was last cleared."""

    def __init__(self, parameter: Any) -> None:
        self.ref = weakref.ref(parameter)
        self.own: list[float] | None = None  # two projections
        self.times = 0
        self.is_carried = False  # the gradient of an earlier step was still there when the first one came
        self._is_fresh = True  # cleared, or nothing came since the last step
        self._was_used = False  # an optimizer has stepped with what is in it
        self.handle: Any = None  # of the hook, while it is there

    def cleared(self) -> None:
        """The gradient was set to nothing."""
        self.own, self.times, self.is_carried = None, 0, False
        self._is_fresh, self._was_used = True, False

    def used(self) -> None:
        """An optimizer has stepped with it."""
        self.own, self.times, self.is_carried = None, 0, False
        self._is_fresh, self._was_used = True, True

    def arrives(self, gradient: Any) -> None:
        """A backward pass brings this much."""
        import torch

        parameter = self.ref()
        if parameter is None:
            return
        if self._is_fresh:
            there = parameter.grad
            if there is None or not self._was_used or not bool(torch.count_nonzero(there.detach())):
                self.cleared()
            else:
                self.is_carried = True
            self._is_fresh = False
        found = sketch(gradient)
        if found is not None:
            before = self.own or [0.0, 0.0]
            self.own = [before[0] + found[0], before[1] + found[1]]
            self.times += 1


class Gradients:
    """The leaves of all optimizers."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.leaves: dict[int, Leaf] = {}
        self._listens = True

    def follow(self, parameter: Any) -> Leaf | None:
        """Its leaf; what comes to it at steps that are looked at is seen from now on."""
        known = self.leaves.get(id(parameter))
        if known is not None and known.ref() is parameter:
            return known
        if not getattr(parameter, "requires_grad", False) or not parameter.is_leaf:
            return None
        leaf = self.leaves[id(parameter)] = Leaf(parameter)
        if self._listens:
            self._attach(leaf)
        return leaf

    def listen(self, listens: bool) -> None:
        """Hooks are there only for steps that are looked at: each takes microseconds of every backward pass."""
        if listens is self._listens:
            return
        self._listens = listens
        for leaf in self.leaves.values():
            if listens:
                self._attach(leaf)
            elif leaf.handle is not None:
                leaf.handle.remove()
                leaf.handle = None

    def _attach(self, leaf: Leaf) -> None:
        parameter, observer = leaf.ref(), self.observer
        if parameter is None or not parameter.requires_grad or leaf.handle is not None:
            return

        def arrives(gradient: Any) -> None:
            if observer.is_looking:
                with observer.guard:
                    leaf.arrives(gradient)

        leaf.handle = parameter.register_hook(arrives)

    def of(self, parameter: Any) -> Leaf | None:
        """Its leaf, if it is followed."""
        known = self.leaves.get(id(parameter))
        return known if known is not None and known.ref() is parameter else None

    def cleared(self, parameters: Any) -> None:
        """These gradients were cleared by their optimizer or module."""
        for one in parameters:
            leaf = self.of(one)
            if leaf is not None:
                leaf.cleared()


def hook(observer: Observer) -> None:
    """See backward passes, clearing and clipping."""
    import torch

    gradients = observer.parts["gradients"] = Gradients(observer)

    def backward_of(really: Any) -> Any:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if observer.is_looking:
                with observer.guard:
                    _note_backward(observer, tensors)
            result = really(tensors, *args, **kwargs)
            observer.stamp += 1
            return result

        return backward

    def zero_of(really: Any) -> Any:
        def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = really(self, *args, **kwargs)
            with observer.guard:
                if observer.is_looking:
                    groups = getattr(self, "param_groups", None)
                    mine = [one for group in groups for one in group["params"]] if groups else self.parameters()
                    gradients.cleared(mine)
                observer.note("zeroed")
            return result

        return zero_grad

    def clip_of(really: Any) -> Any:
        def clip(*args: Any, **kwargs: Any) -> Any:
            result = really(*args, **kwargs)
            if observer.is_looking:
                with observer.guard:
                    most = (
                        args[1]
                        if len(args) > 1
                        else next((kwargs[name] for name in ("max_norm", "clip_value") if name in kwargs), None)
                    )
                    norm = float(result) if result is not None and not hasattr(result, "to_local") else None
                    observer.note("clip", line=line(), most=None if most is None else float(most), norm=norm)
            return result

        return clip

    wrap(torch.autograd, "backward", backward_of)
    wrap(torch.optim.Optimizer, "zero_grad", zero_of)
    wrap(torch.nn.Module, "zero_grad", zero_of)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        wrap(torch.nn.utils.clip_grad, name, clip_of)
        setattr(torch.nn.utils, name, getattr(torch.nn.utils.clip_grad, name))


def _note_backward(observer: Observer, tensors: Any) -> None:
    loss = tensors[0] if isinstance(tensors, (list, tuple)) and tensors else tensors
    factor, kind = composition(loss)
    held = [one.require_backward_grad_sync for one in observer.parts["models"].wrapped()]
    value = float(loss.detach()) if getattr(loss, "numel", lambda: 0)() == 1 else None
    more = {"held_back": True} if observer.parts["models"].holds_back() else {}
    observer.note("backward", line=line(), factor=factor, kind=kind, syncs=held, loss=value, **more)
