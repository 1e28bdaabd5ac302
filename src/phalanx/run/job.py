"""A whole job: its attempts, its bundle, the verdict at its end, and the status it exits with."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.model import bundle as layout
from phalanx.model.ranks import speak_of
from phalanx.notify.outlets import Outlets
from phalanx.run.attempts import run_attempts
from phalanx.run.bundle import BundleWriter
from phalanx.run.children import Children
from phalanx.run.ending import Reason
from phalanx.run.exporting import Exporting
from phalanx.run.observer import Observation, Observer, Setup, make_observer
from phalanx.run.plan import Plan
from phalanx.run.screen import Screen
from phalanx.run.signals import Signals
from phalanx.run.spec import OnStall
from phalanx.run.supervisor import Attempt
from phalanx.run.verdict import short_text
from phalanx.run.verdicts import Verdicts
from phalanx.run.watch.asking import tell_trackers


@dataclass(frozen=True, slots=True)
class Result:
    """What became of the job."""

    status: int
    reason: Reason
    report: dict[str, Any] | None
    bundle: Path


class Job:
    """Runs a plan. `observe` makes the watch of an attempt."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        screen: Screen,
        observe: Callable[[Setup, Callable[[str], None]], Observer] = make_observer,
        diagnoses: Callable[[Reason], bool] = lambda reason: True,
        is_kept: bool = True,
        outlets: Outlets | None = None,
    ) -> None:
        self._plan = plan
        self._screen = screen
        self._observe = observe
        self._outlets = outlets
        self._diagnoses = diagnoses  # whether a job that ended so is worth a report
        self._is_kept = is_kept  # whether the bundle will be there to be looked into
        self._writer = BundleWriter(folder, screen.say)
        self._folder = folder
        self._verdicts = Verdicts(self._writer)
        self._stalls = 0
        self._said = ""  # the verdict on the screen
        self._has_straggler = False
        self._children: Children | None = None

    def run(self) -> Result:
        """Run it to its end, restarts included."""
        began = time.monotonic()
        limit = self._plan.spec.timeout
        deadline = began + limit if limit is not None else None
        self._writer.describe(self._plan)
        self._screen.say(self._plan.announcement())
        speak_of(self._plan.roles)
        with Signals() as signals:
            children = self._children = Children()
            try:
                reason = run_attempts(
                    self._plan.spec.max_restarts,
                    lambda number: self._attempt(number, children, signals, deadline),
                    self._writer,
                    self._screen.say,
                )
            finally:
                children.close()
        self._screen.close()
        self._writer.finish(reason.status, reason.text)
        try:
            report = self._final_report(reason) if self._diagnoses(reason) else None
        except KeyboardInterrupt:
            report = None  # all is in the bundle already
        finally:
            self._verdicts.close()
        self._say_end(reason, report, time.monotonic() - began)
        if self._outlets is not None:
            self._outlets.close()
        return Result(reason.status, reason, report, self._folder)

    def _attempt(self, number: int, children: Children, signals: Signals, deadline: float | None) -> Reason:
        spec = self._plan.spec
        folder, self._said = self._writer.begin_attempt(number, range(self._plan.size)), ""
        setup = Setup(
            attempt=folder,
            size=self._plan.size,
            framework=self._plan.framework.NAME,
            command=self._plan.argv,
            inside=spec.inside,
            notices_stalls=spec.on_stall is not OnStall.IGNORE,
            stall_after=spec.stall_after,
            stall_at_most=spec.stall_at_most,
            roles=self._plan.roles,
        )
        return Attempt(
            number=number,
            plan=self._plan,
            folder=folder,
            writer=self._writer,
            children=children,
            screen=self._screen,
            signals=signals,
            observer=self._observer(setup),
            deadline=deadline,
            on_stall=self._stalled,
            on_straggler=self._slowed,
            on_suspicion=self._suspect,
            poll=self._poll,
        ).run()

    def _observer(self, setup: Setup) -> Observer:
        made = self._observe(setup, self._screen.say)
        return made if self._outlets is None else Exporting(made, self._screen.say, self._outlets)

    def _stalled(self, seen: Observation) -> None:
        """Have the verdict made while the job goes on."""
        self._stalls += 1
        if not self._verdicts.is_pending:
            self._suspect()
            self._verdicts.ask()

    def _suspect(self) -> None:
        """A verdict may soon be wanted: what takes most of its time is done beforehand."""
        if (pid := self._verdicts.prepare()) is not None and self._children is not None:
            self._children.adopt(pid)

    def _slowed(self) -> None:
        """A job that ends well may still be worth a verdict."""
        self._has_straggler = True

    def _poll(self) -> None:
        if (report := self._verdicts.poll()) is not None:
            self._say_stalled(report)
            if self._plan.spec.on_stall is OnStall.REPORT:
                self._screen.say("the job is left running; Ctrl-C ends it, and --on-stall abort ends it by itself")

    def _say_stalled(self, report: dict[str, Any]) -> None:
        """What was found out while the job stood."""
        if text := short_text(report):
            self._said = text
            self._screen.say_block(text)
            self._tell(report, text)

    def _tell(self, report: dict[str, Any], text: str) -> None:
        attempt = layout.attempts_of(self._folder)[-1]
        # Beside the job: a rank that does not answer must not delay what ends the others.
        threading.Thread(target=tell_trackers, args=(attempt, report, text), daemon=True).start()
        if self._outlets is not None:
            self._outlets.verdict(report, text)

    def _final_report(self, reason: Reason) -> dict[str, Any] | None:
        # A job that was ended for what a verdict tells need not wait for the whole report.
        if reason.kind == "stall" and self._verdicts.is_pending and (report := self._verdicts.wait()) is not None:
            self._say_stalled(report)
        return self._verdicts.final()

    def _say_end(self, reason: Reason, report: dict[str, Any] | None, seconds: float) -> None:
        verdict = (report or {}).get("verdict") or {}
        if reason.status == 0 and verdict.get("confidence") == "possible" and not (self._stalls or self._has_straggler):
            report = None  # of a job that ended well, only what is more than a suspicion is worth a line
        if report is not None and (text := short_text(report)):
            if text != self._said or reason.kind != "stall":  # said a moment ago
                self._screen.say_block(text)
            self._tell(report, text)
        elif reason.status != 0 and report is None:
            self._screen.say("there is no verdict: the diagnosis could not be made")
        how = f"{reason.text}, after {seconds:.1f} s"
        more = f"; more: phalanx diagnose {self._folder}" if report is not None and verdict else ""
        self._screen.say(f"{how}; bundle: {self._folder}{more}" if self._is_kept else how)
