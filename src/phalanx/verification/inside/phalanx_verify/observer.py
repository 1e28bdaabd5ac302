"""One rank's observer: what all its parts share, and what belongs to the step under way."""

from __future__ import annotations

import atexit
import functools
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from phalanx_record.guard import Guard

from .journal import Journal
from .lines import line
from .settings import Settings

_FLUSH_AFTER = 0.5  # seconds: a kill loses little, and short steps do not pay for it
_MOST_EVENTS = 400  # of one step; a script that accumulates for ever must not fill the memory


class Observer:
    """Parts call `note` for what happens between two steps; whoever sees the step end takes it with `taken`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.journal = Journal(settings.folder)
        self.step = 0  # finished passes: several optimizers that take turns count once
        self.stamp = 0  # changes whenever gradients come or go
        self.is_broken = False
        self.guard = Guard(self.give_up)
        self._events: list[list[Any]] = []
        self._began = self._flushed = 0.0
        self.parts: dict[str, Any] = {}
        self.journal.write("start", rank=settings.rank, size=settings.size, python=sys.version.split()[0])
        self.journal.flush()
        atexit.register(self._at_end)

    def hooks(self) -> dict[str, Callable[[ModuleType], None]]:
        """What is to be done when which module has been imported."""
        from . import batches, chance, collectives, graphs, horovods, loaders, logged, noise

        batches.hook(self)
        return {
            "torch.distributed.distributed_c10d": self._guarded(lambda module: collectives.hook(self, module)),
            "torch.utils.data.dataloader": self._guarded(lambda module: loaders.hook(self, module)),
            "torch": self._guarded(self._hook_torch),
            "torch.utils.data._utils.fetch": self._guarded(lambda module: noise.hook_fetching(self, module)),
            **{name: self._guarded(lambda module: logged.hook(self, module)) for name in logged.MODULES},
            "horovod.torch.mpi_ops": self._guarded(lambda module: horovods.hook_calls(self, module)),
            "horovod.torch.optimizer": self._guarded(lambda module: horovods.hook_optimizer(self, module)),
            **{name: self._guarded(act) for name, act in graphs.hooks(self).items()},
            "numpy.random": self._guarded(lambda module: chance.hook_numpy(self, module)),
        }

    def _guarded(self, act: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
        def safely(module: ModuleType) -> None:
            with self.guard:
                act(module)

        return safely

    def _hook_torch(self, module: ModuleType) -> None:
        from . import chance, divisions, gradients, models, noise, optimizers, saves, scaling, schedules

        for part in (models, gradients, optimizers, schedules, scaling, chance, saves, divisions, noise):
            part.hook(self)

    @property
    def is_looking(self) -> bool:
        """Whether the step under way is fingerprinted."""
        return not self.is_broken and self.settings.looks_at(self.step)

    def note(self, kind: str, /, **fields: Any) -> None:
        """Something happened between two steps; order is kept."""
        self.stamp += kind != "call"
        if len(self._events) < _MOST_EVENTS and not self.is_broken:
            self._events.append([kind, fields])

    def taken(self) -> list[list[Any]]:
        """What was noted since the last step, in order; the list begins anew."""
        events, self._events = self._events, []
        return events

    def write(self, kind: str, /, **fields: Any) -> None:
        """A record of its own, with the step it belongs to."""
        if not self.is_broken:
            self.journal.write(kind, step=self.step, **fields)

    def finish_step(self) -> None:
        """A pass is over. Ends the run where that was the last one wanted."""
        self.step += 1
        now = time.monotonic()
        if now - self._flushed > _FLUSH_AFTER:
            self._flushed = now
            self.journal.flush()
        self._began = self._began or now
        told = self.settings
        is_long = told.seconds and now - self._began >= told.seconds and self.step >= told.least
        if told.kill and self.step >= told.kill:
            self.end_run("kill")
        if (told.steps and self.step >= told.steps) or is_long:
            self.end_run("steps" if told.steps else "seconds")

    def end_run(self, why: str) -> None:
        """Leave, when all ranks have come this far: no rank may lose a peer that it still talks to."""
        from .ending import leave

        self.write("enough", why=why, line=line())
        self.journal.flush()
        leave(self.settings)

    def give_up(self, error: BaseException) -> None:
        """A fault of ours ends the observation and not the job."""
        if not self.is_broken:
            import traceback

            where = "".join(traceback.format_tb(error.__traceback__)[-2:])
            self.journal.write("broken", step=self.step, error=f"{type(error).__name__}: {error}", where=where)
            self.journal.flush()
            self.is_broken = True

    def _at_end(self) -> None:
        with self.guard:
            self.write("end", events=self.taken())
            self.journal.flush()


def wrap(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace `owner.name` by what `make` makes of it, under the same name and signature."""
    really = getattr(owner, name)
    setattr(owner, name, functools.wraps(really)(make(really)))
