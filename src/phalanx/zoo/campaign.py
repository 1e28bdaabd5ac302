"""One go through many faults: where each runs, where its logs go, and what came of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from phalanx.zoo import ledger
from phalanx.zoo.environments import versions
from phalanx.zoo.fault import Fault, FaultError
from phalanx.zoo.runner import judge_ending, run_fault
from phalanx.zoo.schedule import Budget, Result, remember, run_many


@dataclass(frozen=True, slots=True)
class Campaign:
    """How the faults are run. `homes` is the environment of each, by name; `zoo` is where the ledger is, if one is kept."""

    homes: Mapping[str, Path]
    keep: Path
    cured: bool = False
    watched: bool = False
    record: bool = False
    zoo: Path | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, faults: Sequence[Fault], budget: Budget) -> Iterator[Result]:
        """Run them and hand out what is done; each result is remembered, and what passed is written into the ledger."""
        by_name = {fault.name: fault for fault in faults}
        for result in run_many(faults, self._run_one, budget, self.stop):
            if self.stop.is_set():  # what was cut short says nothing
                continue
            remember(self.keep, result)
            fault = by_name[result.name]
            proves = result.good and not self.watched and (self.cured or fault.healthy)
            if proves and self.zoo is not None:
                ledger.note(self.zoo, fault, result.seconds, versions(self.homes[fault.name], fault))
            yield result

    def logs_of(self, fault: Fault) -> Path:
        """Where the logs of a fault go."""
        if self.record and not (self.cured or self.watched):
            return fault.recorded
        kind = ("bundles-" if self.watched else "") + ("cured" if self.cured else "faulty")
        return self.keep / kind / fault.name

    def _run_one(self, fault: Fault) -> Result:
        files = fault.fingerprint()
        out = self.logs_of(fault)
        home = self.homes[fault.name]
        try:
            outcome = run_fault(fault, home, out, cured=self.cured, watched=self.watched, stop=self.stop)
        except FaultError as error:
            return Result(fault.name, self.cured, False, str(error), 0.0, files, watched=self.watched)
        ending = judge_ending(fault, outcome, out, cured=self.cured)
        return Result(
            fault.name,
            self.cured,
            ending.good,
            ending.why,
            outcome.seconds,
            files,
            outcome.exit_codes,
            outcome.timed_out,
            outcome.spoke_s,
            self.watched,
            outcome.peak_mb,
            fault.memory_mb,
            outcome.began,
            outcome.first_s,
        )
