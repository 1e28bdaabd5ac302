"""Transformers' Trainer: added to its default callbacks where `PHALANX=1` is set; else `callbacks=[PhalanxCallback()]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from phalanx.callbacks import note

if TYPE_CHECKING:
    TrainerCallback: Any = object
else:
    from transformers import TrainerCallback


class PhalanxCallback(TrainerCallback):  # type: ignore[misc]
    """Tells the watch at which step the rank is."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A step of the optimizer is done."""
        note(state.global_step, "training")

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """One batch of an evaluation."""
        note(state.global_step, "evaluating")

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A checkpoint was written."""
        note(state.global_step, "saving")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Through."""
        note(state.global_step, "done")


def add_by_default(trainer: Any) -> None:
    """Have every Trainer of this process made with it; `trainer` is the module `transformers.trainer`."""
    defaults = getattr(trainer, "DEFAULT_CALLBACKS", None)
    if isinstance(defaults, list) and PhalanxCallback not in defaults:
        defaults.append(PhalanxCallback)
