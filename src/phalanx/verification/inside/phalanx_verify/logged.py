"""What Lightning logs in an evaluation: by which name, whether it is reduced over the ranks, and this rank's own value."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .lines import line
from .observer import Observer, wrap

MODULES = (
    "lightning.pytorch.trainer.connectors.logger_connector.result",
    "pytorch_lightning.trainer.connectors.logger_connector.result",
)
_MOST = 200


def hook(observer: Observer, module: ModuleType) -> None:
    """See every value that goes into the results of a validation or a test."""
    told = 0

    def make(really: Any) -> Any:
        def log(self: Any, fx: Any, name: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal told
            if (
                str(fx).removeprefix("on_").startswith(("validation", "test"))
                and told < _MOST
                and not observer.is_broken
            ):
                with observer.guard:
                    told += 1
                    sums = type(value).__module__.partition(".")[0] == "torchmetrics"  # it is reduced by itself
                    number = float(value) if not sums and getattr(value, "numel", lambda: 1)() == 1 else None
                    synced = bool(kwargs.get("sync_dist") or kwargs.get("rank_zero_only") or sums)
                    observer.write("logged", fx=str(fx), name=str(name), value=number, synced=synced, line=line())
            return really(self, fx, name, value, *args, **kwargs)

        return log

    wrap(module._ResultCollection, "log", make)
