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

    class WorkerGroupCallback: ...
else:
    from ray.train.v2._internal.execution.callback import WorkerGroupCallback
    from ray.train.v2.api.callback import UserCallback


class PhalanxCallback(UserCallback, WorkerGroupCallback):  # type: ignore[misc]
    """Says who broke the run, by what every worker raised."""

    def __init__(self) -> None:
        self._said: set[int] = set()  # ranks of this attempt whose exceptions were judged

    def before_worker_group_start(self, worker_group_context: Any) -> None:
        """Another attempt may fail in the same rank."""
        self._said.clear()

    def after_worker_group_poll_status(self, worker_group_status: Any) -> None:
        """Ray calls `after_exception` only for callbacks of the RunConfig, never for those of the variable, and without tracebacks."""
        errors = {rank: one.error for rank, one in worker_group_status.worker_statuses.items() if one.error is not None}
        if errors:
            self.after_exception(None, errors)

    def after_exception(self, run_context: Any, worker_exceptions: Mapping[int, Exception]) -> None:
        """Ray hands over the exceptions by rank; those of victims are among them. It asks again while workers end."""
        if set(worker_exceptions) <= self._said:
            return
        self._said |= set(worker_exceptions)
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
