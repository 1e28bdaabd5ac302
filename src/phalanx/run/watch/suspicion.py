"""The closer look at a job that seems to stand still. It takes a second or two, so it runs beside the supervisor's loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from phalanx.model import Frame
from phalanx.run.observer import Observation
from phalanx.run.watch.look import RankLook
from phalanx.run.watch.network import NetworkView, view_network
from phalanx.run.watch.snapshot import Snapshot
from phalanx.run.watch.stacks import ProcessStacks, take_stacks
from phalanx.run.watch.stall import Notice, Verdict
from phalanx.run.watch.standing import Doing, Standing, standing_of
from phalanx.run.watch.waiting import picture_of

_LOOKS, _BETWEEN_S = 6, 0.5
_FEW_LINES = 3
_NO_BEAT_S = 6.0  # a thread that asks for the lock gets it within milliseconds, on a loaded machine in a second or two


class Inquiry:
    """One closer look. `observations` is None where it found that there is no stall after all."""

    def __init__(
        self,
        notice: Notice,
        size: int,
        take: Callable[[], Snapshot],
        pids: Mapping[int, int],
        looks: Mapping[int, RankLook],
        ended: Mapping[int, int],
    ) -> None:
        self.notice = notice
        self.observations: Sequence[Observation] | None = ()
        self._size, self._take, self._pids, self._looks, self._ended = size, take, pids, looks, dict(ended)
        self._thread = threading.Thread(target=self._run, name="phalanx-inquiry", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait for its end, for so long."""
        self._thread.join(timeout)

    @property
    def finished(self) -> bool:
        """Whether `observations` is there."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.observations = self._look()
        except Exception as error:  # a watch that breaks must not take the job's supervisor with it
            text = f"the job stands still, but a closer look failed: {type(error).__name__}: {error}"
            self.observations = [Observation("stall", (), text, {"quiet_s": round(self.notice.quiet, 1)})]

    def _look(self) -> Sequence[Observation] | None:
        network = view_network(self._pids)
        working = {self._pids[rank]: rank for rank in self.notice.working if rank in self._pids}
        held = frozenset(pid for pid, rank in working.items() if self._holds_the_lock(rank))
        if self.notice.verdict is Verdict.BUSY and not spins(list(working), held):
            return None
        taken = self._take()
        standings = self._standings(taken)
        picture = picture_of(standings, taken.recorders, self._size)
        if self.notice.verdict is Verdict.BUSY and not picture.waiting:
            return None  # nobody waits: everybody computes, each for itself
        found = _network_observation(network)
        culprits = picture.culprits
        if found and picture.reason not in ("stopped", "ended"):
            culprits = ()  # who stands behind a broken path cannot help it
        data: dict[str, Any] = {
            **picture.data,
            "missing": list(culprits),
            "kind": self.notice.verdict.value,
            "quiet_s": round(self.notice.quiet, 1),
            "patience_s": round(self.notice.patience, 1),
            "snapshot": taken.number,
        }
        if taken.error:
            data["no_stacks"] = taken.error
        text = f"nothing has moved for {self.notice.quiet:.0f} s: {picture.text}"
        if self.notice.verdict is Verdict.STOPPED:
            text = picture.text
        if taken.error:
            text += f". No stacks: {taken.error}"
        return [*found, Observation("stall", culprits, text, data)]

    def _standings(self, taken: Snapshot) -> dict[int, Standing]:
        found: dict[int, Standing] = {}
        for rank, stacks in taken.stacks.items():
            found[rank] = self._standing(rank, stacks, taken)
        for rank, code in self._ended.items():
            found[rank] = Standing(rank, Doing.ENDED, code=code)
        return found

    def _holds_the_lock(self, rank: int) -> bool:
        """No heartbeat from a rank that runs: its other threads do not get the interpreter's lock."""
        look = self._looks.get(rank)
        if look is None or look.beat is None or not look.beat.connected or look.process.state in "Tt":
            return False
        return look.time - look.beat.time > _NO_BEAT_S

    def _standing(self, rank: int, stacks: ProcessStacks, taken: Snapshot) -> Standing:
        recorder = taken.recorders.get(rank)
        outstanding = any(state.waits_in is not None for state in recorder.values()) if recorder is not None else None
        look = self._looks.get(rank)
        if outstanding is None and look is not None and look.beat is not None and look.beat.connected:
            outstanding = look.beat.outstanding
        standing = standing_of(rank, stacks, outstanding=outstanding, workers=taken.workers.get(rank, ()))
        if rank in self.notice.stopped:
            return Standing(rank, Doing.STOPPED, frame=standing.frame, pid=self._pids.get(rank, 0))
        return replace(standing, holds_lock=self._holds_the_lock(rank))


def _network_observation(view: NetworkView) -> list[Observation]:
    told = view.describe()
    if not told:
        return []
    return [Observation("network", view.ranks(), "; ".join(told[:4]), {"paths": told[:32]})]


def spins(pids: Sequence[int], held: frozenset[int] = frozenset()) -> bool:
    """Whether every one of these processes computes and gets nowhere.

    It turns round in a few lines of the user's own code; or, for those of `held`, whose native code keeps the
    interpreter's lock, never moves at all. An evaluation is seen at many places, and deep inside the framework.
    """
    if not pids:
        return False
    seen: dict[int, set[tuple[str, int]]] = {pid: set() for pid in pids}
    whole: dict[int, set[tuple[Frame, ...]]] = {pid: set() for pid in pids}
    for number in range(_LOOKS):
        if number:
            time.sleep(_BETWEEN_S)
        for pid, stacks in take_stacks(pids, pause=False).items():
            main = stacks.main
            if main is None or not main.frames:
                continue
            innermost = main.frames[-1]
            if not innermost.is_user_code and pid not in held:
                return False
            seen[pid].add((innermost.file, innermost.line))
            whole[pid].add(main.frames)
    return all(len(whole[pid]) == 1 if pid in held else 0 < len(places) <= _FEW_LINES for pid, places in seen.items())
