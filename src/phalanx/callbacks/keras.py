"""Keras: `model.fit(…, callbacks=[PhalanxCallback()])`. Keras has no way to add one from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from phalanx.callbacks import note

if TYPE_CHECKING:
    Callback: Any = object
else:
    from keras.callbacks import Callback


class PhalanxCallback(Callback):  # type: ignore[misc]
    """Tells the watch at which step the rank is."""

    def __init__(self) -> None:
        super().__init__()
        self._step = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """A step is done."""
        self._step += 1
        note(self._step, "training")

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """A batch of an evaluation."""
        note(self._step, "evaluating")

    def on_train_end(self, logs: Any = None) -> None:
        """Through."""
        note(self._step, "done")
