"""Lightning: found by the entry point `lightning.pytorch.callbacks_factory`, so that a Trainer has it without a change to the script."""

from __future__ import annotations

import sys
from typing import Any

from phalanx.callbacks import is_wanted, note


def callbacks() -> list[Any]:
    """What Lightning adds to every Trainer: nothing unless the job is watched."""
    return [_made("lightning.pytorch")] if is_wanted() else []


def older_callbacks() -> list[Any]:
    """The same for the package `pytorch_lightning`, whose classes are others."""
    return [_made("pytorch_lightning")] if is_wanted() else []


def _made(package: str) -> Any:
    base: Any = sys.modules[package].Callback

    class PhalanxCallback(base):  # type: ignore[misc]
        """Tells the watch at which step the rank is."""

        def on_train_batch_end(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
            note(trainer.global_step, "training")

        def on_validation_start(self, trainer: Any, *args: Any) -> None:
            note(trainer.global_step, "validating")

        def on_test_start(self, trainer: Any, *args: Any) -> None:
            note(trainer.global_step, "testing")

        def on_save_checkpoint(self, trainer: Any, *args: Any) -> None:
            note(trainer.global_step, "saving")

        def on_fit_end(self, trainer: Any, *args: Any) -> None:
            note(trainer.global_step, "done")

    return PhalanxCallback()
