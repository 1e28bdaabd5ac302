"""What a replay finds: every place at which the rank differs from its recording, and how the replay ended."""

from __future__ import annotations

import json
import os
from typing import Any

from .calls import Call
from .debugging import Debugging
from .fingerprints import different_ranges
from .journal import Journal, private
from .memory import size_of, width_of
from .naming import names_in
from .records import Line, Record
from .settings import Settings
from .training import Training

_MOST = 1000


class Findings:
    """Collected as the replay goes; written when it ends."""

    def __init__(
        self, settings: Settings, record: Record, training: Training, debugging: Debugging, journal: Journal
    ) -> None:
        self._journal = journal
        self._settings, self._record, self._training, self._debugging = settings, record, training, debugging
        self._marks: dict[str, int] = {}
        self.differences: list[dict[str, Any]] = []
        self.compared = 0
        self._has_ended = False

    def call(self, call: Call, line: Line, recorded: Line) -> bool:
        """Compare what is handed to a call with the recording. Whether it is the same call at all."""
        self.compared += 1
        if any(line.get(name) != recorded.get(name) for name in ("op", "shapes", "with")):
            self.add("call", line, recorded, f"{words(line)} was {words(recorded)}")
            return False
        for index, (now, then) in enumerate(zip(line["in"], recorded["in"])):
            if now != then:
                self._input(call, index, line, recorded)
        return True

    def _input(self, call: Call, index: int, line: Line, recorded: Line) -> None:
        tensor = call.given()[index]
        width = width_of(tensor)
        parts = [side.get("parts", [""] * (index + 1))[index] for side in (line, recorded)]
        ranges = different_ranges(size_of(tensor), *parts)
        where = [(low // width, -(-high // width)) for low, high in ranges]
        names = names_in(call, tensor, where, self._training)
        self.add("input", line, recorded, f"input {index} differs", elements=where, names=names)

    def result(self, line: Line, what: str) -> None:
        """What the rank got is not what the recording says it got."""
        self.add("result", line, None, what)

    def random(self, step: int, marks: dict[str, int]) -> None:
        """Compare where the random generators stand."""
        recorded = self._record.steps.get(step, {}).get("random", {})
        for name, mark in recorded.items():
            if name in marks and marks[name] != mark:
                self.add("random", {"s": step}, None, f"{name}'s random state differs after step {step - 1}")

    def batch(self, kind: str, mark: str, counts: bool) -> None:
        """Compare the next batch, choice of samples or input of the model; it is passed over where it does not count."""
        place = self._marks[kind] = self._marks.get(kind, -1) + 1
        recorded = self._record.marks[kind]
        if not counts or place >= len(recorded) or recorded[place]["mark"] == mark:
            return
        was = str(recorded[place]["mark"])
        told = {
            "batch": "the batch differs",
            "model-input": "the model's input differs",
            "order": f"samples {mark[:60]} were {was[:60]}",
        }
        self.add(kind, {"s": self._training.step}, None, told[kind])

    def add(self, kind: str, line: Line, recorded: Line | None, what: str, **more: Any) -> None:
        """One difference."""
        found = {"kind": kind, "step": line.get("s", self._training.step), "what": what, **more}
        found |= {name: line[name] for name in ("n", "op", "g", "q", "line", "shapes") if name in line}
        if recorded is not None and recorded.get("line") != line.get("line"):
            found["recorded_line"] = recorded.get("line")
        if len(self.differences) < _MOST:
            self.differences.append(found)
            self._journal.line("difference", **found)  # at once: the script may be about to crash
        if len(self.differences) == 1:
            self._debugging.at_difference(what)

    def end(self, calls: int, why: str, how: str, exception: str = "") -> None:
        """Write all of it, once. `how`: script, exception, asked, recording (it ends here), gap (in it), other call."""
        if self._has_ended:
            return
        self._has_ended = True
        self._journal.close()
        self._journal.meta(steps=self._training.step, calls=calls)
        found = {
            "schema": "phalanx.replayed/1",
            "rank": self._settings.rank,
            "why": why,
            "how": how,
            "exception": exception,
            "step": self._training.step,
            "compared": self.compared,
            "calls": calls,
            "recorded": len(self._record.calls),
            "differences": self.differences,
        }
        path = os.path.join(self._settings.result, "replayed.json")
        with open(path + ".new", "w", encoding="utf-8", opener=private) as file:
            json.dump(found, file, indent=1)
        os.replace(path + ".new", path)


def words(line: Line) -> str:
    """A call, for a person."""
    shapes = ", ".join(f"{shape[0]}{list(shape[1:])}" for shape in line.get("shapes", []))
    at = f" at {line['line']}" if line.get("line") else ""
    extra = f" ({line['with']})" if line.get("with") else ""
    return f"{line['op'].strip('_')}{extra} of {shapes or 'nothing'}, call {line['q']} of group {line['g']}{at}"
