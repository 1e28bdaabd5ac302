"""Single numbers that are divided by the number of ranks: a loss, or a metric."""

from __future__ import annotations

from typing import Any

from .lines import line
from .observer import Observer, wrap

_NAMES = ("__truediv__", "__itruediv__", "div", "div_")
_MOST = 200


def hook(observer: Observer) -> None:
    """See such divisions. Others are let through after one comparison."""
    import torch

    size = observer.settings.size
    if size < 2 or observer.settings.sample:
        return
    told = 0

    def make(really: Any) -> Any:
        def divide(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal told
            if args and type(args[0]) in (int, float) and args[0] == size and told < _MOST and self.numel() == 1:
                with observer.guard:
                    told += 1
                    observer.note("divided", line=line(), loss=bool(self.requires_grad))
            return really(self, *args, **kwargs)

        return divide

    for name in _NAMES:
        wrap(torch.Tensor, name, make)
