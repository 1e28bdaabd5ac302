"""Has the verdict made over all nodes' evidence: while the job stands still, and at its end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from phalanx.remote.bundle_receiver import BundleReceiver
from phalanx.remote.lines import Line
from phalanx.remote.link import Message
from phalanx.remote.paths import SILENT_S, Paths
from phalanx.remote.viewer import Stage
from phalanx.run.verdict import short_text
from phalanx.run.verdicts import Verdicts

_AFTER_STALL = 15.0  # seconds in which the other nodes' stacks are awaited


class StallCoordinator:
    """Asked by the driver's loop; the diagnosis itself is a process of its own."""

    def __init__(self, receiver: BundleReceiver, stage: Stage) -> None:
        self._receiver = receiver
        self._stage = stage
        self._stalled: dict[int, float] = {}
        self._verdicts = Verdicts(receiver.writer)
        self._paths = Paths()

    def forget(self) -> None:
        """A new attempt: what stood still before is over."""
        self._stalled = {}
        self._paths = Paths()

    def heard(self, line: Line, data: Mapping[str, Any]) -> None:
        """What a node's watch saw; of interest here are connections that get no answer."""
        if data.get("what") == "network":
            self._paths.told(line, (data.get("facts") or {}).get("ends", ()))

    def stalled(self, node: int, reached: Iterable[Any] = ()) -> None:
        """A node's ranks stand still, their stacks are here, and it reached these other nodes."""
        self._stalled.setdefault(node, time.monotonic())
        self._paths.reached(node, reached)

    def look(self, now: float, running: Mapping[int, Line], is_ending: bool) -> tuple[int, ...] | None:
        """When all nodes that still speak have told where their ranks stand, or one has and time is up, ask who is to blame. Returns
        them once it is known; None before."""
        if not self._verdicts.is_pending:
            silent = {node for node, line in running.items() if now - line.heard > SILENT_S}
            is_due = self._stalled and now - min(self._stalled.values()) >= _AFTER_STALL
            if self._stalled and (set(running) - silent <= set(self._stalled) or is_due):
                self._stalled = {}
                for seen in self._paths.conclude(running, silent, now):  # what only the driver sees
                    self._stage.say(seen["text"])
                    self._receiver.observation((), "the driver", Message("observation", seen))
                self._verdicts.ask()
            return None
        if not self._verdicts.is_done:
            return None
        if (report := self._verdicts.wait()) is None:
            return ()
        if (text := short_text(report)) and not is_ending:
            self._stage.say_block(text)
        return tuple(int(rank) for rank in (report.get("verdict") or {}).get("culprit_ranks", ()))

    def final(self, needed: bool) -> Mapping[str, Any] | None:
        """The verdict at the end, kept in the bundle; None where there is nothing to judge."""
        try:
            return self._verdicts.final() if needed else None
        finally:
            self._verdicts.close()
