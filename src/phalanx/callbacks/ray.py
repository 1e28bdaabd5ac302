"""Ray Train v2: `RAY_TRAIN_CALLBACKS=phalanx.callbacks.ray.PhalanxCallback` has the exceptions of its workers diagnosed, on the controller."""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    UserCallback: Any = object
else:
    from ray.train.v2.api.callback import UserCallback


class PhalanxCallback(UserCallback):  # type: ignore[misc]
    """Says who broke the run, by what every worker raised."""

    def after_exception(self, run_context: Any, worker_exceptions: Mapping[int, Exception]) -> None:
        """Ray hands over the exceptions by rank; those of victims are among them."""
        try:
            text = verdict_of(worker_exceptions)
        except Exception as error:  # Ray ends a run whose callback fails
            text = f"phalanx: no verdict: {type(error).__name__}: {error}"
        if text:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def verdict_of(exceptions: Mapping[int, BaseException]) -> str:
    """The verdict over tracebacks by rank, as the terminal shows it."""
    from phalanx.run.verdict import Diagnosis, short_text

    with tempfile.TemporaryDirectory(prefix="phalanx-ray-") as name:
        for rank, error in exceptions.items():
            inner = getattr(error, "cause", None) or error
            text = str(error) if "Traceback (most recent call last)" in str(error) else ""
            lines = traceback.format_exception(type(inner), inner, inner.__traceback__)
            Path(name, f"rank{rank}.log").write_text(text or "".join(lines), encoding="utf-8")
        report = Diagnosis(Path(name)).ask().result()
    return short_text(report) if report is not None else ""
