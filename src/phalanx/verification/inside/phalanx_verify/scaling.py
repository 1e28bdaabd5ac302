"""Loss scalers: their scale, and the steps that they skip."""

from __future__ import annotations

from typing import Any

from .observer import Observer, wrap


def hook(observer: Observer) -> None:
    """See `GradScaler.step`: a skipped step calls no optimizer, and is told here."""
    from torch.amp import GradScaler

    def make(really: Any) -> Any:
        def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            optimizers = observer.parts["optimizers"]
            before = optimizers.calls
            with observer.guard:
                if self.is_enabled():
                    observer.note("scaler", scale=self.get_scale())
            result = really(self, optimizer, *args, **kwargs)
            if optimizers.calls == before and not observer.is_broken:
                with observer.guard:
                    optimizers.skipped(optimizer)
            return result

        return step

    def unscale_of(really: Any) -> Any:
        def unscale_(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = really(self, *args, **kwargs)
            with observer.guard:
                observer.note("unscaled")
            return result

        return unscale_

    wrap(GradScaler, "step", make)
    wrap(GradScaler, "unscale_", unscale_of)
