"""The replay: answers a rank's collectives from the recording, and compares all that the rank hands to them."""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import traceback
from types import ModuleType
from typing import Any

from . import chance, checkpoints, dispatch, state
from .alone import refuse_objects, stand_in
from .arrival import Act
from .calls import Call
from .debugging import Debugging
from .entries import Numbering, describe, results_of
from .fingerprints import Bytes, different_ranges
from .journal import Journal
from .naming import names_in
from .recording import at_first_group
from .records import BrokenRecordError, Records
from .settings import Settings
from .skipping import Skipping, plausible, wrap_loaders
from .software import software, sources
from .training import Training

_MOST_DIFFERENCES = 1000


def prepare(settings: Settings) -> dict[str, Act]:
    """What to do when which module is imported."""
    player = Player(settings)

    def torch_is_there(module: ModuleType) -> None:
        if not settings.with_peers:
            stand_in(module, settings.rank, settings.size)
            if not settings.trusts_objects:
                refuse_objects(module)
        at_first_group(module, player.begin)

    return {"torch.distributed.distributed_c10d": torch_is_there}


class Player:
    """Replays one rank: alone, or among real peers (`with_peers`), where it only compares."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.records = Records(settings.attempt)
        self.record = self.records.of(settings.rank)
        self.journal = Journal(settings.result)  # a light recording of the replay: two replays can be compared
        self.training = Training()
        self.training.notes_buckets = True
        self._numbering = Numbering()
        self._lock = threading.RLock()
        self._marks: dict[str, int] = {}
        self.differences: list[dict[str, Any]] = []
        self.compared = 0
        self._debugging = Debugging(settings)
        self._has_ended = False
        self._skipping = Skipping(settings.first)
        self.journal.meta(schema="phalanx.record/1", rank=settings.rank, size=settings.size, mode="light")
        atexit.register(self.end, "the script ended")
        self._follow_exceptions()

    def begin(self) -> None:
        """Install everything; once."""
        if self._numbering.calls or self.training.on_step:
            return
        self.training.follow()
        self.training.on_step.append(self._step)
        self.training.on_batch.append(self._batch)
        if self._skipping.is_on:
            print(
                f"phalanx: steps 0 to {self._skipping.until - 1} are passed over; what the script says of them is not computed",
                file=sys.stderr,
                flush=True,
            )
            self.training.on_epoch.append(self._epoch)
            self._skipping.begin()
            wrap_loaders(self._skipping)
        dispatch.stand_between(self.handle)
        self.journal.meta(framework="torch", software=software(), sources=sources(self.settings.script))

    def handle(self, call: Call, forward: dispatch.Forward) -> Any:
        """One collective."""
        with self._lock:
            group = call.series
            number, place = self._numbering.next(group)
            if self._skipping.is_on:
                return self._pass_over(call, group, place)
            line = describe(call, number, place, self.training.step, self.settings.script)
            self.journal.line("call", **line)
            recorded = self.record.calls.get((group, place))
            if recorded is None:
                self.finish(f"the recording ends before {_words(line)}: the rank did not come so far")
            else:
                self._compare(call, line, recorded)
                self._debugging.at_call(self.training.step, line)
            if self.settings.with_peers:
                return self._among_peers(call, forward, recorded, number)
            assert recorded is not None
            return self._answer(call, line, recorded)

    def _compare(self, call: Call, line: dict[str, Any], recorded: dict[str, Any]) -> None:
        self.compared += 1
        for name in ("op", "shapes", "with"):
            if line.get(name) != recorded.get(name):
                self._differs("call", line, recorded, f"{_words(line)} was {_words(recorded)}")
                self.finish(
                    f"the script made another call than the recorded one: {_words(line)}, recorded was {_words(recorded)}",
                    "other call",
                )
        for index, (now, then) in enumerate(zip(line["in"], recorded["in"])):
            if now != then:
                tensor = call.given()[index]
                parts = [side.get("parts", [""] * (index + 1))[index] for side in (line, recorded)]
                size = tensor.numel() * tensor.element_size()
                width = tensor.element_size()
                where = [(low // width, -(-high // width)) for low, high in different_ranges(size, *parts)]
                names = names_in(call, tensor, where, self.training)
                self._differs("input", line, recorded, f"input {index} differs", elements=where, names=names)

    def _differs(
        self, kind: str, line: dict[str, Any], recorded: dict[str, Any] | None, what: str, **more: Any
    ) -> None:
        found = {"kind": kind, "step": line.get("s", self.training.step), "what": what, **more}
        for name in ("n", "op", "g", "q", "line", "shapes"):
            if name in line:
                found[name] = line[name]
        if recorded is not None and recorded.get("line") and recorded.get("line") != line.get("line"):
            found["recorded_line"] = recorded["line"]
        if len(self.differences) < _MOST_DIFFERENCES:
            self.differences.append(found)
        if len(self.differences) == 1:
            self._debugging.at_difference(what)

    def _answer(self, call: Call, line: dict[str, Any], recorded: dict[str, Any]) -> Any:
        done = self.record.done.get(int(recorded["n"]))
        tensors = call.got()
        if done is None and (tensors or call.kind.name != "send"):
            self.finish(f"the recording ends in {_words(recorded)}: it was entered, and never completed")
        if tensors and done is not None:
            self._fill(call, tensors, line, done)
        if not call.kind.returns_work:
            return None
        source = int(done["src"]) if done is not None and "src" in done else None
        first = call.first_argument()
        work = dispatch.done_work(tensors, source)
        return (first, work.boxed()) if call.kind.first_returned else work.boxed()

    def _pass_over(self, call: Call, group: str, place: int) -> Any:
        """A collective of a step that is not computed: what is kept of it steers the script, the rest only has to fit."""
        recorded = self.record.calls.get((group, place))
        if recorded is None or recorded["op"] != call.kind.name:
            was = _words(recorded) if recorded is not None else "nothing"
            self.finish(
                f"on the way to step {self._skipping.until} the script made another call than it did: {call.kind.name}, call "
                f"{place} of group {group}; recorded was {was}. Replay from the start, if the recording allows",
                "gap",
            )
            raise AssertionError
        done = self.record.done.get(int(recorded["n"]))
        tensors = call.got()
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        try:
            self._put(tensors, self.records.result(self.settings.rank, group, place, size))
        except BrokenRecordError:
            plausible(call)
        if not call.kind.returns_work:
            return None
        source = int(done["src"]) if done is not None and "src" in done else None
        boxed = dispatch.done_work(tensors, source).boxed()
        return (call.first_argument(), boxed) if call.kind.first_returned else boxed

    def _epoch(self, loader: int) -> None:
        """A loader begins: while steps are passed over the generators do not stand where they stood."""
        if self._skipping.is_on and loader <= len(self.record.epochs):
            chance.restore(self.record.epochs[loader - 1]["states"])

    def _arrive(self, step: int) -> None:
        path = os.path.join(self.record.folder, checkpoints.folder_name(step))
        tensors, facts = checkpoints.read(path)
        left = state.restore(self.training, tensors, facts)
        if left:
            self.finish(
                f"the checkpoint after step {step} does not fit the script: no place for {', '.join(left[:5])}", "gap"
            )
        print(f"phalanx: at step {step}, from its checkpoint", file=sys.stderr, flush=True)

    def _fill(self, call: Call, tensors: list[Any], line: dict[str, Any], done: dict[str, Any]) -> None:
        sizes = [tensor.numel() * tensor.element_size() for tensor in tensors]
        try:
            data = self.records.result(self.settings.rank, line["g"], line["q"], sum(sizes))
        except BrokenRecordError as error:
            self.finish(f"the recording does not hold the result of {_words(line)}: {error}", "gap")
            return
        self._put(tensors, data)
        _, fingerprints = results_of(call)
        if fingerprints != done["out"]:
            self._differs("result", line, None, "this rank's result was not what its peers kept of it")

    def _put(self, tensors: list[Any], data: bytearray) -> None:
        import numpy

        passed = 0
        for tensor in tensors:
            size = tensor.numel() * tensor.element_size()
            source = numpy.frombuffer(data, numpy.uint8, size, passed)
            passed += size
            target = Bytes(tensor)
            if target.is_view:
                target.array[:] = source
            else:
                import torch

                flat = torch.frombuffer(bytearray(source.tobytes()), dtype=tensor.dtype) if size else tensor.reshape(-1)
                tensor.detach().copy_(flat.view(tensor.shape))

    def _among_peers(self, call: Call, forward: dispatch.Forward, recorded: Any, number: int) -> Any:
        returned = forward()
        work = dispatch.work_of(returned)
        done = self.record.done.get(int(recorded["n"])) if recorded is not None else None

        def compare(_: Any) -> None:
            with self._lock:
                _, fingerprints = results_of(call)
                self.journal.line("done", n=number, out=fingerprints)
                if done is not None and fingerprints != done["out"]:
                    self._differs("result", recorded, None, "the result differs")

        if work is None or (not call.kind.gets and call.kind.gives):
            return returned
        if call.is_async:
            return dispatch.with_work(returned, dispatch.then(work, compare))
        work.wait()
        compare(work)
        return returned

    def _step(self, step: int) -> None:
        if self._skipping.is_on:
            if self._skipping.stepped(step):
                self._arrive(step)
            return
        with self._lock:
            marks = chance.marks()
            self.journal.line("step", s=step, random=marks)
            recorded = self.record.steps.get(step)
            if recorded is not None:
                for name, mark in recorded["random"].items():
                    if name in marks and marks[name] != mark:
                        self._differs(
                            "random", {"s": step}, None, f"{name}'s random state differs after step {step - 1}"
                        )
            if 0 <= self.settings.last < step:
                self.finish(f"step {self.settings.last} is done, as asked", "asked")
        self._debugging.at_step(step)

    def _batch(self, kind: str, loader: int, mark: str) -> None:
        with self._lock:
            self.journal.line(kind, s=self.training.step, loader=loader, mark=mark)
            place = self._marks[kind] = self._marks.get(kind, -1) + 1
            recorded = self.record.marks[kind]
            if self._skipping.is_on and kind == "model-input":
                return
            if place < len(recorded) and recorded[place]["mark"] != mark:
                words = {"batch": "the batch differs", "model-input": "the model's input differs", "order": "samples"}[
                    kind
                ]
                if kind == "order":
                    words = f"samples {mark[:60]} were {str(recorded[place]['mark'])[:60]}"
                self._differs(kind, {"s": self.training.step}, None, words)

    def _follow_exceptions(self) -> None:
        before = sys.excepthook

        def told(kind: Any, error: Any, trace: Any) -> None:
            self.end(
                "the script raised an exception", "exception", "".join(traceback.format_exception(kind, error, trace))
            )
            before(kind, error, trace)
            self._debugging.after(trace)

        sys.excepthook = told

    def finish(self, why: str, how: str = "recording") -> None:
        """The replay cannot or need not go on: write down what was found, and leave."""
        self._debugging.at_end(why)
        self.end(why, how)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def end(self, why: str, how: str = "script", exception: str = "") -> None:
        """Write down what was found."""
        if self._has_ended:
            return
        self._has_ended = True
        self.journal.close()
        self.journal.meta(steps=self.training.step, calls=self._numbering.calls)
        found = {
            "schema": "phalanx.replayed/1",
            "rank": self.settings.rank,
            "why": why,
            "how": how,  # script, exception, asked, recording (it ends here), gap (in the recording), other call
            "exception": exception,
            "step": self.training.step,
            "compared": self.compared,
            "recorded": len(self.record.calls),
            "differences": self.differences,
        }
        path = os.path.join(self.settings.result, "replayed.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
        os.replace(path + ".new", path)


def _words(line: dict[str, Any]) -> str:
    shapes = ", ".join(f"{shape[0]}{list(shape[1:])}" for shape in line.get("shapes", []))
    at = f" at {line['line']}" if line.get("line") else ""
    extra = f" ({line['with']})" if line.get("with") else ""
    return f"{line['op'].strip('_')}{extra} of {shapes or 'nothing'}, call {line['q']} of group {line['g']}{at}"
