"""The replay: answers a rank's collectives from the recording, and compares all that the rank hands to them."""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import traceback
from types import ModuleType
from typing import Any, NoReturn

from . import chance, checkpoints, dispatch, fingerprints, horovod, state, tensorflow
from .alone import refuse_objects, stand_in
from .arrival import Act, at_first_group
from .calls import KINDS, Call, Operation
from .debugging import Debugging
from .entries import Numbering, Result, describe
from .findings import Findings, words
from .journal import Journal
from .memory import size_of
from .records import BrokenRecordError, Records, put
from .settings import Settings
from .skipping import Skipping, plausible, wrap_loaders
from .software import software, sources
from .training import Training, mark_of


def prepare(settings: Settings) -> dict[str, Act]:
    """What to do when which module is imported."""
    player = Player(settings)

    def torch_is_there(module: ModuleType) -> None:
        if not settings.with_peers:
            stand_in(module, settings.rank, settings.size)
            if not settings.trusts_objects:
                refuse_objects(module)
        at_first_group(module, player.begin)

    others = horovod.answer_with(player, settings) | tensorflow.answer_with(player, settings)
    return {"torch.distributed.distributed_c10d": torch_is_there, **others}


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
        self._debugging = Debugging(settings)
        self._findings = Findings(settings, self.record, self.training, self._debugging, self.journal)
        self._skipping = Skipping(settings.first)
        self._has_begun = False
        self.journal.meta(schema="phalanx.record/1", rank=settings.rank, size=settings.size, mode="light")
        if settings.native:
            fingerprints.use(settings.native)
        atexit.register(self.end, "the script ended")
        self._follow_exceptions()

    def begin(self, framework: str = "torch") -> None:
        """Install everything; once."""
        if self._has_begun:
            return
        self._has_begun = True
        self.journal.meta(framework=framework, software=software(), sources=sources(self.settings.script))
        if framework == "tensorflow":
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

    def handle(self, operation: Operation, args: tuple[Any, ...], forward: dispatch.Forward) -> Any:
        """One collective."""
        call = Call(operation, args)
        with self._lock:
            group = call.series
            number, place = self._numbering.next(group)
            if self._skipping.is_on:
                return self._pass_over(call, group, place)
            line = self._described(call, number, place)
            recorded = self.record.calls.get((group, place))
            if recorded is None:
                self.finish(f"the recording ends before {words(line)}: the rank did not come so far")
            else:
                self._compare(call, line, recorded)
                if not self.settings.with_peers:
                    return self._answer(call, line, recorded)
        # Not under the lock: other threads complete earlier calls meanwhile.
        return self._among_peers(call, forward, recorded, number)

    def answer(self, call: Any) -> None:
        """A call that has no Work (Horovod's): its results are there when this returns."""
        with self._lock:
            number, place = self._numbering.next(call.series)
            recorded = self.record.calls.get((call.series, place))
            done = self.record.done.get(int(recorded["n"])) if recorded is not None else None
            for tensor, shape in zip(call.got(), (done or {}).get("became", [])):
                if list(tensor.shape) != shape:
                    tensor.resize_(shape)  # Horovod sizes some results when they arrive
            if self._skipping.is_on:
                self._pass_over(call, call.series, place)
                return
            line = self._described(call, number, place)
            if recorded is None:
                self.finish(f"the recording ends before {words(line)}: the rank did not come so far")
            elif done is None:
                self.finish(f"the recording ends in {words(recorded)}: it was entered, and never completed")
            else:
                self._compare(call, line, recorded)
                if call.got():
                    self._fill(call, call.got(), line, done)

    def _described(self, call: Any, number: int, place: int) -> dict[str, Any]:
        text, held = describe(call, self.settings.script)
        line: dict[str, Any] = json.loads(f"{{{text}{fingerprints.listed(held)}}}")
        line |= {"n": number, "q": place, "s": self.training.step}
        self.journal.line("call", **line)
        return line

    def _compare(self, call: Call, line: dict[str, Any], recorded: dict[str, Any]) -> None:
        if not self._findings.call(call, line, recorded):
            told = f"the script made another call than the recorded one: {words(line)}, recorded was {words(recorded)}"
            self.finish(told, "other call")
        self._debugging.at_call(self.training.step, line)

    def _answer(self, call: Call, line: dict[str, Any], recorded: dict[str, Any]) -> Any:
        done = self.record.done.get(int(recorded["n"]))
        tensors = call.got()
        if done is None and (tensors or call.kind.name != "send"):
            self.finish(f"the recording ends in {words(recorded)}: it was entered, and never completed")
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
            was = words(recorded) if recorded is not None else "nothing"
            self.finish(
                f"on the way to step {self._skipping.until} the script made another call than it did: {call.kind.name}, call "
                f"{place} of group {group}; recorded was {was}. Replay from the start, if the recording allows",
                "gap",
            )
            raise AssertionError
        done = self.record.done.get(int(recorded["n"]))
        tensors = call.got()
        size = sum(size_of(tensor) for tensor in tensors)
        try:
            put(tensors, self.records.pieces(self.settings.rank, group, place, size))
        except BrokenRecordError:
            plausible(call)
        if not call.kind.returns_work or call.kind.name not in KINDS:
            return None
        source = int(done["src"]) if done is not None and "src" in done else None
        boxed = dispatch.done_work(tensors, source).boxed()
        return (call.first_argument(), boxed) if call.kind.first_returned else boxed

    def _epoch(self, loader: int) -> None:
        """A loader begins: while steps are passed over the generators do not stand where they stood."""
        if self._skipping.is_on and loader <= len(self.record.epochs):
            chance.restore(self.record.epochs[loader - 1]["states"])

    def _arrive(self, step: int) -> None:
        path = os.path.join(self.record.folder, checkpoints.folder_name(step, "snapshot"))
        if not os.path.isdir(path):
            path = os.path.join(self.record.folder, checkpoints.folder_name(step))
        try:
            tensors, facts = checkpoints.read(path)
            left = state.restore(self.training, tensors, facts)
        except (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError) as error:
            self.finish(f"the checkpoint after step {step} does not fit the script: {error}", "gap")
            return
        if left:
            self.finish(
                f"the checkpoint after step {step} does not fit the script: no place for {', '.join(left[:5])}", "gap"
            )
        print(f"phalanx: at step {step}, from its checkpoint", file=sys.stderr, flush=True)

    def _fill(self, call: Call, tensors: list[Any], line: dict[str, Any], done: dict[str, Any]) -> None:
        size = sum(size_of(tensor) for tensor in tensors)
        try:
            pieces = self.records.pieces(self.settings.rank, line["g"], line["q"], size)
        except BrokenRecordError as error:
            # A ring has an end; in a full recording the same is a gap.
            how = "recording" if self.settings.mode == "ring" and self._findings.compared > 1 else "gap"
            self.finish(f"the recording does not hold the result of {words(line)}: {error}", how)
            return
        put(tensors, pieces)
        if Result(call).fingerprints() != done["out"]:
            self._findings.result(line, "this rank's result was not what its peers kept of it")

    def _among_peers(self, call: Call, forward: dispatch.Forward, recorded: Any, number: int) -> Any:
        returned = forward()
        work = dispatch.work_of(returned)
        done = self.record.done.get(int(recorded["n"])) if recorded is not None else None

        def compare(_: Any) -> None:
            with self._lock:
                out = Result(call).fingerprints()
                self.journal.line("done", n=number, out=out)
                if done is not None and out != done["out"]:
                    self._findings.result(recorded, "the result differs")

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
            self._findings.random(step, marks)
            if 0 <= self.settings.last < step:
                self.finish(f"step {self.settings.last} is done, as asked", "asked")
        self._debugging.at_step(step)

    def _batch(self, kind: str, loader: int, batch: Any) -> None:
        mark = mark_of(kind, batch)
        with self._lock:
            self.journal.line(kind, s=self.training.step, loader=loader, mark=mark)
            self._findings.batch(kind, mark, counts=kind != "model-input" or not self._skipping.is_on)

    def _follow_exceptions(self) -> None:
        before = sys.excepthook

        def told(kind: Any, error: Any, trace: Any) -> None:
            if kind.__name__ == "BdbQuit":
                self._leave("the debugger was left", "asked")
            self.end(
                "the script raised an exception", "exception", "".join(traceback.format_exception(kind, error, trace))
            )
            before(kind, error, trace)
            self._debugging.after(trace)

        sys.excepthook = told

    def finish(self, why: str, how: str = "recording") -> None:
        """The replay cannot or need not go on: write down what was found, and leave."""
        self._debugging.at_end(why)
        self._leave(why, how)

    def _leave(self, why: str, how: str) -> NoReturn:
        self.end(why, how)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def end(self, why: str, how: str = "script", exception: str = "") -> None:
        """Write down what was found."""
        self._findings.end(self._numbering.calls, why, how, exception)
