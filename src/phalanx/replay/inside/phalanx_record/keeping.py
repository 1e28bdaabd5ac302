"""What is kept of a rank beside its log, by mode: results to disk, results in a ring, checkpoints when they are due."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .calls import Call
from .checkpoints import Schedule, save_async
from .entries import Result
from .fingerprints import UNSEEN, Told, copy_memory
from .journal import Journal, private
from .ring import ALWAYS_KEPT, KEPT_AT_START, Listener, Ring
from .segments import is_room, make_room
from .settings import Settings
from .state import capture
from .training import Training

_MOST_AT_START = 64 << 20  # bytes: a job that never steps must not fill the disk
_AGREED_AHEAD = 8  # steps between deciding on a checkpoint by time and making it: no rank is so far ahead of another


class Keeper:
    """Of one rank. Results come from several threads; all else is called under the recorder's lock."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        training: Training,
        write: Callable[[str], None],
        lock: threading.RLock,
        quick: Any = None,
    ) -> None:
        self._settings, self._journal, self._training, self._lock = settings, journal, training, lock
        self._quick = quick
        self._ring = _make_ring(settings, quick) if settings.mode == "ring" else None
        self._schedule = Schedule(settings.every_steps)
        self._failed = False
        # Each rank looks at what it hands in and at its share of the result, which it reads anyway. Others see a number
        # that is not finite a step later, in their own gradients, while the ring still has the step that it came from.
        self.looks = self._ring is not None
        self._write = write
        self._listener = Listener(settings.request, write) if self._ring is not None and settings.request else None
        self._agreed = os.path.join(os.path.dirname(settings.request), "checkpoint-at") if settings.request else ""
        self._next_by_time = time.monotonic() + settings.every_seconds
        self._chosen = -_AGREED_AHEAD  # the step that rank 0 chose last

    def result(self, number: int, step: int, call: Call, more: dict[str, Any]) -> None:
        """Take the fingerprints of a result, keep it or this rank's share, and say so in the log."""
        head = f'"k":"done","n":{number},'
        if more:
            head += self._journal.inside(more)
        own = call.handed_in if call.kind.gathers else None
        if own is not None and self._settings.mode == "light":
            self._journal.text(f'{head}"out":["{own:016x}"]')
            return
        result = Result(call)
        if not result.size or self._settings.mode == "light":
            self._journal.prints(f'{head}"out":[', result.memory())
            return
        share = [result.begin, result.end]
        is_start = not step and self._journal.bytes_of_tensors < _MOST_AT_START
        if self._ring is None or result.size <= (KEPT_AT_START if is_start else ALWAYS_KEPT):
            place = self._journal.tensor(str(number), result.share())
            head += self._journal.inside({"at": place, "share": share, "of": result.size})
            self._journal.prints(f'{head}"out":[', result.memory())
            return
        with self._lock:
            space = self._ring.reserve(number, share, result.size)
        if own is not None:
            mine = result.memory()[0]
            copy_memory(space.address, mine.address, mine.size)
            self._journal.text(f'{head}"out":["{own:016x}"]')
            space.commit()
            return
        told = Told()
        look = call.look if call.kind.reduces else UNSEEN
        self._journal.prints(f'{head}"out":[', result.memory(), False, space.address, told, look)
        space.commit()
        if told[1] or (call.kind.reduces and call.is_odd):
            self.odd(call.kind.name, step)

    def begin(self) -> None:
        """From now on results come here: the compiled kernel keeps them itself."""
        if self._quick is not None:
            self._quick.keep_in(self._ring.cursor if self._ring is not None else None, ALWAYS_KEPT)
            self._quick.shared.looks = self.looks

    def odd(self, name: str, step: int) -> None:
        """A value is not finite; only the first one has the ring written."""
        if self.looks:
            self.looks = False
            if self._quick is not None:
                self._quick.shared.looks = False
            self._write(f"a value that is not finite in {name.strip('_')} of step {step}")

    def grow(self, need: int) -> None:
        """The compiled kernel needs room in the ring."""
        if self._ring is not None:
            self._ring.grow(need)

    def stepped(self, step: int) -> None:
        """A step is over: the moment for snapshots and checkpoints."""
        if self._ring is not None and self._ring.wants_snapshot(step):
            state = capture(self._training)
            if state is not None:
                self._ring.snapshot(state)
        if self._failed or not self._schedule.take(step, self._step_by_time(step)):
            return
        began = time.perf_counter()
        state = capture(self._training)
        if state is None:
            self._schedule.release()
            return
        try:
            save_async(state, self._journal.folder, self._saved(step), self._not_saved)
        except Exception as error:  # a checkpoint that fails costs the checkpoints, not the log
            self._not_saved(error)
        self._journal.line("blocked", s=step, seconds=round(time.perf_counter() - began, 6))

    def _step_by_time(self, step: int) -> int | None:
        """The step that rank 0 chose by its clock; all ranks go by it, because a checkpoint is one moment of the job."""
        if not self._settings.every_seconds or not self._agreed:
            return None
        now = time.monotonic()
        if self._settings.rank == 0 and now >= self._next_by_time and step >= self._chosen + _AGREED_AHEAD:
            # Not before the last one chosen was made by all: steps may be slower than the clock.
            self._next_by_time = now + self._settings.every_seconds
            self._chosen = step + _AGREED_AHEAD
            with open(self._agreed + ".new", "w", encoding="utf-8", opener=private) as file:
                file.write(str(self._chosen))
            os.replace(self._agreed + ".new", self._agreed)
        try:
            with open(self._agreed, encoding="utf-8") as file:
                return int(file.read() or 0)
        except (OSError, ValueError):
            return None

    def _saved(self, step: int) -> Callable[[str, int], None]:
        def done(path: str, size: int) -> None:
            self._schedule.release()
            self._journal.line("checkpoint", s=step, bytes=size)

        return done

    def _not_saved(self, error: BaseException) -> None:
        self._schedule.release()
        if not self._failed:
            self._failed = True
            print(
                f"phalanx: rank {self._settings.rank}: no further checkpoints ({type(error).__name__}: {error}); the job and its "
                "recording go on",
                file=sys.stderr,
                flush=True,
            )

    def write_ring(self, why: str) -> None:
        """Write what the ring holds."""
        if self._ring is not None:
            begin, size = self._ring.write(self._journal.folder, self._journal.tensor, self._journal.line)
            step = self._training.step
            self._journal.line("written", why=why, s=step, begin=begin, bytes=size, most_bytes=self._ring.most_bytes)

    def release(self) -> None:
        """Recording has stopped: give back what the ring takes."""
        if self._ring is not None:
            self._ring.release()

    def close(self) -> None:
        """The rank ends: its share of the last steps may be needed for another's replay."""
        if self._listener is not None:
            self._listener.close()
        self.write_ring("the rank ended")


def _make_ring(settings: Settings, quick: Any) -> Ring:
    if not is_room(settings.room):  # not given, or closed by a wrapper: then the ring dies with its rank
        return Ring(settings.keep_steps, make_room(), quick)
    os.set_inheritable(settings.room, False)  # it is this process's affair, not that of those it starts
    return Ring(settings.keep_steps, settings.room, quick)
