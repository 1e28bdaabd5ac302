"""The recorder: writes down every collective that the rank makes, and keeps the results as the mode says."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import chance, dispatch, horovod, tensorflow
from .arrival import Act
from .calls import Call
from .entries import Numbering, describe, results_of
from .journal import LOG, Journal
from .keeping import Keeper
from .settings import Settings
from .software import software, sources
from .training import Training, buckets_of

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


def at_first_group(module: ModuleType, begin: Callable[[], None]) -> None:
    """Begin when the first process group is made: before there are no collectives, and PyTorch is imported whole by then."""
    really: Callable[..., Any] = vars(module)["init_process_group"]

    @functools.wraps(really)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        begin()
        return really(*args, **kwargs)

    vars(module)["init_process_group"] = init_process_group


class Recorder:
    """Records one rank. Whatever goes wrong in here is said once and ends the recording, not the job."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.training = Training()
        self._numbering = Numbering()
        self._groups: set[str] = set()
        self._sources: dict[str, str] = {}
        self._lock = threading.RLock()
        self._keeper: Keeper | None = None
        self._pid = os.getpid()
        self._journal: Journal | None = None
        self.is_stopped = False
        self._has_begun = False

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
            )
            if framework != "tensorflow":
                self._follow_torch()
            self._keeper = Keeper(self.settings, self.journal, self.training, self.write)
            self.journal.meta(framework=framework, software=software(), sources=self._sources_so_far())
            self.journal.line("begin", at=time.time())
            atexit.register(self.end)
            self._follow_exceptions()

    def _sources_so_far(self) -> dict[str, str]:
        """The user's files seen until now: at the end Python has forgotten which file was run."""
        self._sources |= sources(self.settings.script)
        return self._sources

    def _follow_torch(self) -> None:
        self.training.follow()
        self.training.on_step.append(self._step)
        self.training.on_batch.append(self._batch)
        self.training.on_epoch.append(self._epoch)
        dispatch.stand_between(self.handle)

    def guarded(self) -> _Guard:
        """A context in which a fault ends the recording."""
        return _Guard(self)

    def handle(self, call: Call, forward: dispatch.Forward) -> Any:
        """One collective."""
        line: dict[str, Any] | None = None
        if not self.is_stopped and os.getpid() == self._pid:
            with self.guarded():
                line = self.enter(call)
        if line is None:
            return forward()
        number = line["n"]
        returned = forward()
        if not call.kind.gets and call.kind.gives:
            return returned  # a send: nothing comes of it
        work = dispatch.work_of(returned)
        if work is None:
            self.leave(number, call, None)
            return returned
        if call.is_async:
            return dispatch.with_work(returned, dispatch.then(work, lambda done: self.leave(number, call, done)))
        work.wait()
        self.leave(number, call, work)
        return returned

    def enter(self, call: Call) -> dict[str, Any]:
        """Write down that a call begins; raises where it cannot be recorded."""
        with self._lock:
            group = call.group.group_name
            if group not in self._groups:
                self._groups.add(group)
                self.journal.line("group", g=group, ranks=_members(call.group), name=call.group.group_desc)
            number, place = self._numbering.next(call.series)
            line = describe(call, number, place, self.training.step, self.settings.script)
            self.journal.line("call", **line)
            return line

    def leave(self, number: int, call: Call, work: Any, **more: Any) -> None:
        """A collective is complete. Called by whichever thread completed it."""
        if self.is_stopped:
            return
        with self.guarded(), self._lock:
            held, fingerprints = results_of(call)
            facts: dict[str, Any] = {"n": number, "out": fingerprints, **more}
            if call.kind.name == "recv_any_source_" and work is not None:
                facts["src"] = int(work._source_rank())
            if self._keeper is not None:
                facts |= self._keeper.result(number, self.training.step, call, held)
            self.journal.line("done", **facts)

    def _step(self, step: int) -> None:
        if self.is_stopped:
            return
        with self.guarded(), self._lock:
            self.journal.line("step", s=step, random=chance.marks())
            if self._keeper is not None:
                self._keeper.stepped(step)
        if step == 2:  # the loop is known by now, and DDP has laid out its buckets for good
            with self.guarded():
                self.journal.meta(sources=self._sources_so_far(), buckets=_buckets(self.training))

    def _batch(self, kind: str, loader: int, mark: str) -> None:
        if self.is_stopped:
            return
        with self.guarded(), self._lock:
            self.journal.line(kind, s=self.training.step, loader=loader, mark=mark)

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
            self.write(f"{kind.__name__}: {error}"[:500])
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
            self.journal.meta(
                ended=time.time(),
                steps=self.training.step,
                calls=self._numbering.calls,
                bytes_of_tensors=self.journal.bytes_of_tensors,
                bytes_of_log=self.journal.bytes_of_log,
                sources=self._sources_so_far(),
            )


class _Guard:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, Exception):
            self._recorder.stop(error)
            return True
        return False


def _members(group: Any) -> list[int]:
    if hasattr(group, "ranks"):
        return list(group.ranks)
    import torch.distributed as distributed

    return [int(rank) for rank in distributed.get_process_group_ranks(group)]


def _buckets(training: Training) -> list[dict[str, Any]]:
    """How DDP groups its parameters, by its own account, and what they are called."""
    found: list[dict[str, Any]] = []
    for reference in training.wrapped:
        model = reference()
        if model is not None:
            rows = [(name, one) for name, one in model.module.named_parameters() if one.requires_grad]
            places = {id(one): place for place, (_, one) in enumerate(rows)}
            found.append(
                {
                    "parameters": [[name, one.numel()] for name, one in rows],
                    "buckets": [[places.get(id(one), -1) for one in bucket] for bucket in buckets_of(model)],
                }
            )
    return found
