"""What a call may raise. All of it is a PhalanxError."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class PhalanxError(Exception):
    """Anything that goes wrong with a call."""


class CannotStart(PhalanxError):
    """The call never got to run; the message says what to change."""


class CallCancelled(PhalanxError):
    """The call was cancelled, so there are no results."""


class NotFinished(PhalanxError, TimeoutError):
    """The call still runs; ask again later."""


class JobFailed(PhalanxError):
    """The job ran and failed. Its `__cause__` is the culprit's own exception, where it raised one."""

    def __init__(
        self,
        message: str,
        *,
        verdict: Mapping[str, Any] | None = None,
        rank: int | None = None,
        host: str | None = None,
        victims: tuple[int, ...] = (),
        bundle: Path | None = None,
        culprits: tuple[int, ...] = (),
        exit_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.verdict = verdict  # as in `phalanx.report/1`; None where there is none
        self.rank = rank  # who broke the job; None where no rank stands out
        self.host = host  # where it ran
        self.victims = victims  # who suffered from it
        self.bundle = bundle  # all evidence: `phalanx diagnose BUNDLE`
        self.culprits = culprits  # where several broke it
        self.exit_code = exit_code  # of `rank`, by Python's form: -9 for SIGKILL


class JobTimedOut(JobFailed):
    """The time limit was reached."""


class RemoteError(Exception):
    """Stands for an exception of a rank that could not travel; its message is the rank's own traceback."""
