"""When the companion that leads has the verdict made, and over what: all nodes' evidence, once it is there or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from phalanx.run.bundle import BundleWriter
from phalanx.run.verdict import short_text
from phalanx.run.verdicts import Verdicts

_AFTER_STALL_S = 15.0  # in which the other nodes' stacks are awaited
_AFTER_DEATH_S = 6.0  # in which peers may say what they saw, and launchers end them


class VerdictTiming:
    """One diagnosis at a time, in a process of its own."""

    def __init__(self, bundle: Path, writer: BundleWriter, say_block: Callable[[str], None]) -> None:
        self._bundle, self._say_block = bundle, say_block
        self._verdicts = Verdicts(writer)
        self._stalled_since: float | None = None
        self._died: float | None = None
        self._said = ""
        self._has_told_death = False
        self.on_verdict: list[Callable[[Mapping[str, Any], str], None]] = []

    def suspect(self) -> None:
        """A verdict may soon be wanted."""
        self._verdicts.prepare()

    def look(self, is_stalled: bool, all_stalled: bool, has_died: bool) -> None:
        """Called at every tick of a companion that leads, while a rank of its own lives."""
        now = time.monotonic()
        if self._verdicts.is_pending:
            if self._verdicts.is_done:
                self._finish()
            return
        if not is_stalled:
            self._stalled_since = None
        elif self._stalled_since is None:
            self._stalled_since = now
            self.suspect()
        if has_died and self._died is None:
            self._died = now
            self.suspect()
        is_due = self._died is not None and not self._has_told_death
        if is_due and now - (self._died or now) >= _AFTER_DEATH_S:
            self._has_told_death = True
            self._verdicts.ask()
        elif self._stalled_since not in (None, -1.0) and (
            all_stalled or now - (self._stalled_since or now) >= _AFTER_STALL_S
        ):
            self._stalled_since = -1.0  # told; until it recovers
            self._verdicts.ask()

    def recovered(self) -> None:
        """What stood goes on."""
        self._stalled_since = None

    def conclude(self, has_failed: bool) -> None:
        """Nobody lives any more: say what is still to be said, and wait for it."""
        knows_more = has_failed and not self._has_told_death  # than one that is still being made
        if self._verdicts.is_pending and not knows_more:
            self._finish()
        if knows_more:
            self._has_told_death = True
            self._verdicts.abandon()
            self._verdicts.ask()
            self._finish()
        self._verdicts.close()

    @property
    def report(self) -> Mapping[str, Any] | None:
        """The last one."""
        return self._verdicts.report

    def _finish(self) -> None:
        report = self._verdicts.wait()
        if report is None:
            return
        text = short_text(report)
        if text and text != self._said:
            self._said = text
            left = "" if self._has_told_death else "the job is left alone; "
            self._say_block(f"{text}\nphalanx: {left}more: phalanx diagnose {self._bundle}")
            for tell in self.on_verdict:
                tell(report, text)
