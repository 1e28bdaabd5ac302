"""The recorder: writes down every collective that the rank makes, and keeps the results as the mode says."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import Any

from . import chance, dispatch, fingerprints, horovod, quick, tensorflow
from .arrival import Act, at_first_group
from .calls import Call, Group, Operation
from .entries import Numbering, describe, is_own
from .guard import Guard
from .journal import LOG, Journal
from .keeping import Keeper
from .quick import Quick
from .settings import Settings
from .software import software, sources
from .training import Training, layouts_of, mark_of

current: list[Recorder] = []  # this process's, for measurements that switch it off and on


def prepare(settings: Settings) -> dict[str, Act]:
    """What to do when which module is imported."""
    recorder = Recorder(settings)
    current.append(recorder)
    return {
        "torch.distributed.distributed_c10d": lambda module: at_first_group(module, recorder.begin),
        **horovod.record_with(recorder, settings),
        **tensorflow.record_with(recorder, settings),
    }


class Recorder:
    """Records one rank. Whatever goes wrong in here is said once and ends the recording, not the job."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.training = Training()
        self._numbering: Numbering | Quick = Numbering()
        self._groups: dict[str, Group] = {}
        self._sources: dict[str, str] = {}
        self._lock = threading.RLock()
        self._keeper: Keeper | None = None
        self._pid = os.getpid()
        self._journal: Journal | None = None
        self._quick: Quick | None = None
        self._is_stopped = False
        self._has_begun = False

    @property
    def is_stopped(self) -> bool:
        """Whether nothing is recorded any more; the compiled kernel goes by it, too."""
        return self._is_stopped

    @is_stopped.setter
    def is_stopped(self, value: bool) -> None:
        self._is_stopped = value
        if self._quick is not None:
            self._quick.shared.stopped = value

    @property
    def journal(self) -> Journal:
        """The rank's record, made when the first process group is: a rank may start other Python processes before."""
        if self._journal is None:
            self._journal = Journal(self.settings.folder)
        return self._journal

    def begin(self, framework: str = "torch") -> None:
        """Install everything; once."""
        if self._has_begun or os.getpid() != self._pid:
            return
        self._has_begun = True
        with self.guarded():
            if os.path.exists(os.path.join(self.settings.folder, LOG)):
                raise FileExistsError("another process of this rank has been recorded already")
            settings = self.settings
            self.journal.meta(
                schema="phalanx.record/1",
                rank=settings.rank,
                size=settings.size,
                mode=settings.mode,
                seed=settings.seed,
                fingerprints=fingerprints.NAME,
            )
            is_native = bool(settings.native) and fingerprints.use(settings.native)
            self.journal.meta(kernel="Python")
            if is_native and framework == "torch" and settings.mode != "full":
                self._load_quick()
            self.keep_with(Keeper(self.settings, self.journal, self.training, self.write, self._lock, self._quick))
            if framework != "tensorflow":
                self._follow_torch()
            self.journal.meta(framework=framework, software=software(), sources=self._sources_so_far())
            self.journal.line("begin", at=time.time())
            atexit.register(self.end)
            os.register_at_fork(after_in_child=self._forked)
            self._follow_exceptions()

    def _load_quick(self) -> None:
        """The compiled kernel, where there is one for this PyTorch; where not, it is written down how it can be made."""
        path, facts = quick.find(sys.modules["torch"])
        if path:
            try:
                self._quick = self._numbering = Quick(path, self.journal.log, self._failed, self._odd, self._grow)
            except (OSError, AttributeError) as error:
                facts = {"not loaded": str(error)}
        if self._quick is not None:
            self.journal.meta(kernel="compiled")
        elif facts:
            self.journal.meta(kernel_for=facts)

    def keep_with(self, keeper: Keeper) -> None:
        """Have results kept by this one from now on."""
        self._keeper = keeper
        keeper.begin()

    def _failed(self, error: int) -> None:
        self.stop(OSError(error, os.strerror(error)))

    def _odd(self, name: str, step: int) -> None:
        with self.guarded():
            if self._keeper is not None:
                self._keeper.odd(name, step)

    def _grow(self, need: int) -> None:
        with self.guarded():
            assert self._keeper is not None
            self._keeper.grow(need)

    def _forked(self) -> None:
        """A child, such as a loader's worker, is not the rank."""
        self.is_stopped = True

    def _sources_so_far(self) -> dict[str, str]:
        """The user's files seen until now: at the end Python has forgotten which file was run."""
        self._sources |= sources(self.settings.script)
        return self._sources

    def _follow_torch(self) -> None:
        self.training.follow()
        self.training.on_step.append(self._step)
        self.training.on_batch.append(self._batch)
        self.training.on_epoch.append(self._epoch)
        self.stand_between()

    def stand_between(self) -> None:
        """See every collective from now on."""
        dispatch.stand_between(self.handle, self._quick)

    def guarded(self) -> Guard:
        """A context in which a fault ends the recording."""
        return Guard(self.stop)

    def handle(self, operation: Operation, args: tuple[Any, ...], forward: dispatch.Forward) -> Any:
        """One collective. Every line of it is passed at every collective; hence no guards, which cost more than a `try`."""
        if self.is_stopped:
            return forward()
        try:
            call = Call(operation, args)
            number = self.enter(call)
        except Exception as error:
            self.stop(error)
            return forward()
        returned = forward()
        if not call.kind.gets and call.kind.gives:
            return returned  # a send: nothing comes of it
        work = None
        try:
            work = dispatch.work_of(returned)
            if work is not None and call.is_async:
                return dispatch.with_work(returned, dispatch.then(work, lambda done: self.leave(number, call, done)))
        except Exception as error:
            self.stop(error)
            return returned
        if work is not None and not call.is_async:
            work.wait()  # a collective that fails is the script's affair
        self.leave(number, call, work)
        return returned

    def enter(self, call: Call) -> int:
        """Write down that a call begins, and return its number; raises where it cannot be recorded."""
        text, held = describe(call, self.settings.script)
        group = call.group
        with self._lock:
            if self._groups.get(group.name) is not group:
                self._groups[group.name] = group
                self.journal.line("group", g=group.name, ranks=group.members, name=group.words)
            number, place = self._numbering.next(call.series)
            head = f'"k":"call","n":{number},"q":{place},"s":{self.training.step},{text}'
            kind = call.kind
            if not (kind.gathers or kind.reduces):
                self.journal.prints(head, held, True)
                if self._quick is not None:
                    self._quick.learn(call, text, held)
                return number
            if kind.reduces and self._keeper is not None and self._keeper.looks:
                call.look = fingerprints.look_of(call.given()[0].dtype)
            told = fingerprints.Told()
            self.journal.prints(head, held, True, 0, told, call.look)
            call.is_odd = bool(told[1])
            if kind.gathers and is_own(held[0].size, group.size):
                call.handed_in = told[0]
            if self._quick is not None:
                self._quick.learn(call, text, held)
            return number

    def leave(self, number: int, call: Call, work: Any, **more: Any) -> None:
        """A collective is complete. Called by whichever thread completed it."""
        if self.is_stopped:
            return
        try:
            assert self._keeper is not None
            if call.kind.name == "recv_any_source_" and work is not None:
                more["src"] = int(work._source_rank())
            self._keeper.result(number, self.training.step, call, more)
        except Exception as error:
            self.stop(error)

    def _step(self, step: int) -> None:
        if self._quick is not None:
            self._quick.shared.step = step
        if self.is_stopped:
            return
        with self.guarded(), self._lock:
            marks = ",".join([f'"{name}":{mark}' for name, mark in chance.marks().items()])
            self.journal.text(f'"k":"step","s":{step},"random":{{{marks}}}')
            if self._keeper is not None:
                self._keeper.stepped(step)
        if step == 2:  # the loop is known by now, and DDP has laid out its buckets for good
            with self.guarded():
                self.journal.meta(sources=self._sources_so_far(), buckets=layouts_of(self.training))

    def _batch(self, kind: str, loader: int, batch: Any) -> None:
        if self.is_stopped:
            return
        with self.guarded():
            mark = mark_of(kind, batch)
            if kind == "order":  # samplers may choose by any text
                self.journal.line(kind, s=self.training.step, loader=loader, mark=mark)
            else:
                self.journal.text(f'"k":"{kind}","s":{self.training.step},"loader":{loader},"mark":"{mark}"')

    def _epoch(self, loader: int) -> None:
        if self.is_stopped:
            return
        with self.guarded(), self._lock:
            self.journal.line("epoch", s=self.training.step, loader=loader, states=chance.states())

    def write(self, why: str) -> None:
        """Write what is held in memory: something has happened, or somebody asks."""
        with self.guarded(), self._lock:
            if self._keeper is not None and not self.is_stopped:
                self._keeper.write_ring(why)

    def _follow_exceptions(self) -> None:
        before = sys.excepthook

        def told(kind: Any, error: Any, trace: Any) -> None:
            why = f"{kind.__name__}: {error}"[:500]
            if not self.is_stopped and os.getpid() == self._pid:
                with self.guarded():
                    self.journal.line("exception", s=self.training.step, what=why)
            self.write(why)
            before(kind, error, trace)

        sys.excepthook = told

    def stop(self, error: BaseException) -> None:
        """Give up recording, say so once."""
        if self.is_stopped:
            return
        self.is_stopped = True
        why = f"{type(error).__name__}: {error}"
        print(
            f"phalanx: rank {self.settings.rank}: recording stopped ({why}); the job goes on, what is recorded stays",
            file=sys.stderr,
            flush=True,
        )
        if self._journal is None:
            return
        try:
            if self._keeper is not None:
                self._keeper.release()
            self.journal.close()
            self.journal.meta(stopped=why)
        except Exception:  # the disk may be full: the warning above has said it
            pass

    def end(self) -> None:
        """The interpreter ends."""
        if os.getpid() != self._pid or self.is_stopped:
            return
        with self.guarded(), self._lock:
            if self._keeper is not None:
                self._keeper.close()
            self.journal.line("end", at=time.time())
            self.journal.close()
            quickly = self._quick.shared if self._quick is not None else None
            self.journal.meta(
                ended=time.time(),
                steps=self.training.step,
                calls=self._numbering.calls,
                calls_compiled=quickly.calls_here if quickly is not None else 0,
                bytes_of_tensors=self.journal.bytes_of_tensors,
                bytes_of_log=self.journal.bytes_of_log + (quickly.bytes_of_log if quickly is not None else 0),
                sources=self._sources_so_far(),
            )
            self.is_stopped = True  # threads of the backend may outlive the interpreter
