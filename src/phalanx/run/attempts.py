"""A job's attempts, one after the other: the same loop for ranks on this machine and on several nodes."""

from __future__ import annotations

from collections.abc import Callable

from phalanx.run.bundle import BundleWriter
from phalanx.run.ending import Reason


class RestartError(Exception):
    """Another attempt could not be started; the message says why."""


def run_attempts(
    max_restarts: int,
    attempt: Callable[[int], Reason],
    writer: BundleWriter,
    say: Callable[[str], None],
    may_restart: Callable[[], bool] = lambda: True,
) -> Reason:
    """Run attempts until one ends well, nothing is left to try, or the user has enough. Returns why the last one ended."""
    reason: Reason | None = None
    for number in range(max_restarts + 1):
        try:
            reason = attempt(number)
        except RestartError as error:
            if reason is None:
                raise
            say(f"cannot start again: {error}")
            return reason  # why it failed is worth more than why it could not be tried again
        restarts = reason.may_restart and number < max_restarts and may_restart()
        writer.end_attempt(reason.text, list(reason.ranks), restarts)
        if not restarts:
            break
        say(f"{writer.why_ended()}: starting again ({number + 1} of {max_restarts})")
    assert reason is not None
    return reason
