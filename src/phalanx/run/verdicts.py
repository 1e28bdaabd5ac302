"""The verdicts on one bundle, one at a time: prepared when something seems wrong, asked for when the job stalls, and at its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from phalanx.model import bundle as layout
from phalanx.run.bundle import BundleWriter
from phalanx.run.verdict import Diagnosis

Make = Callable[[Path], Diagnosis]


class Verdicts:
    """Whoever supervises the job asks here: `phalanx run`, the driver of several nodes, the watch that PHALANX=1 starts."""

    def __init__(self, writer: BundleWriter, make: Make = Diagnosis) -> None:
        self._writer = writer
        self._make = make
        self._prepared: Diagnosis | None = None
        self._pending: Diagnosis | None = None
        self.report: dict[str, Any] | None = None  # the last one, as the bundle keeps it

    @property
    def is_pending(self) -> bool:
        """Whether one was asked for and has not been taken."""
        return self._pending is not None

    @property
    def is_done(self) -> bool:
        """Whether the one that was asked for is there, or will never be."""
        return self._pending is not None and self._pending.is_done

    def prepare(self) -> int | None:
        """A verdict may soon be wanted: have what takes most of its time done. The process id, where one was started for it."""
        if self._prepared is not None:
            return None
        self._prepared = self._make(self._writer.folder)
        return self._prepared.process.pid

    def ask(self) -> None:
        """Have a verdict made of the bundle as it is now, unless one is being made."""
        if self._pending is None:
            self.prepare()
            self._pending, self._prepared = self._prepared, None
            assert self._pending is not None
            self._pending.ask()

    def poll(self) -> dict[str, Any] | None:
        """The report that was asked for, once it is there."""
        return self.wait() if self.is_done else None

    def wait(self) -> dict[str, Any] | None:
        """The report that was asked for; None if it could not be made."""
        pending, self._pending = self._pending, None
        report = pending.result() if pending is not None else None
        if report is not None:
            self.report = report
            self._writer.write_json(self._writer.folder / layout.REPORT, report)
        return report

    def final(self) -> dict[str, Any] | None:
        """The report on the whole job. One that is still being made does not know its end, and is given up."""
        self.abandon()
        self.ask()
        return self.wait()

    def abandon(self) -> None:
        """Nobody wants the one that was asked for any more."""
        if self._pending is not None:
            self._pending.abandon()
            self._pending = None

    def close(self) -> None:
        """No verdict will be wanted any more."""
        self.abandon()
        if self._prepared is not None:
            self._prepared.abandon()
            self._prepared = None
