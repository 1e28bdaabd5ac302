"""The closer look at a job that seems to stand still. It takes a second or two, so it runs beside the supervisor's loop."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from phalanx.model import Frame
from phalanx.run.observer import Observation
from phalanx.run.watch.inside.phalanx_turning import CHANGES, TURNS
from phalanx.run.watch.look import RankLook
from phalanx.run.watch.neighbours import find_other_neighbour
from phalanx.run.watch.network import observe_network, view_network
from phalanx.run.watch.partners import is_point_to_point
from phalanx.run.watch.processes import children_of
from phalanx.run.watch.rank_position import Doing, RankPosition, doing_of, position_of
from phalanx.run.watch.roots import find_dissent, find_other_name
from phalanx.run.watch.snapshot import Snapshot
from phalanx.run.watch.stacks import ProcessStacks, Thread, take_stacks
from phalanx.run.watch.stall import Notice, Verdict
from phalanx.run.watch.stall_verdict import judge_stall
from phalanx.run.watch.starts import find_stranger

_LOOKS, _BETWEEN_S = 6, 0.5
_FEW_LINES = 3
_FEWEST_LOOKS = 4
_LONG = 10  # by how many times the job's patience must be exceeded before who might get somewhere is held to turn in a circle
_OF_A_PROCESSOR = 0.4  # what it must have had of one in that time: where it gets less, all it does takes longer
_AT_EXIT = 3  # the same for what a rank does after its script: a last upload may rest for a while
# Questions of the standard library, by function and file.
_QUESTION = re.compile(r"(?:\w+\.)?(?:exists|lexists|isfile|isdir|is_file|is_dir|stat)$")
_ASKED = re.compile(
    r"(?:^<frozen (?:genericpath|posixpath|os)>|(?:^|/)(?:genericpath|posixpath|pathlib|pathlib/\w+)\.py)$"
)
_NAP_S = 60.0  # what a script may sleep, in figures, without being taken for one that hangs
_NAP_OVER_S = 3.0  # after which it would have moved
_NO_BEAT_S = 6.0  # a thread that asks for the lock gets it within milliseconds, on a loaded machine in a second or two


class StallInvestigation:
    """One closer look. `observations` is None where it found that there is no stall after all."""

    def __init__(
        self,
        notice: Notice,
        size: int,
        take: Callable[[], Snapshot],
        pids: Mapping[int, int],
        looks: Mapping[int, RankLook],
        ended: Mapping[int, int],
        ask: Callable[[Sequence[int]], Mapping[int, int]] = lambda ranks: {},
    ) -> None:
        self.notice = notice
        self.observations: Sequence[Observation] | None = ()
        self.is_likely = False  # becomes true while it still looks, when it will probably say something
        self._size, self._take, self._pids, self._looks, self._ended = size, take, pids, looks, dict(ended)
        self._ask = ask
        self._thread = threading.Thread(target=self._run, name="phalanx-investigation", daemon=True)

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
        if self.notice.verdict is Verdict.BUSY and not self._gets_nowhere(working, held):
            return None
        if self.notice.verdict is Verdict.APART and not self._all_wait_apart():
            return None
        self.is_likely = True
        taken = self._take()
        positions = self._positions(taken)
        asked = (
            find(taken.stacks, self._size)
            for find in (find_dissent, find_other_name, find_other_neighbour, find_stranger)
        )
        dissent = next((one for one in asked if one is not None), None)
        verdict = judge_stall(positions, taken.recorders, self._size, dissent)
        if self.notice.verdict is Verdict.STALL and pauses_by_itself(positions) and not self._does_not_end(positions):
            return None
        if self.notice.verdict is Verdict.BUSY and not verdict.waiting:
            return None  # nobody waits: everybody computes, each for itself
        is_early = self.notice.verdict is Verdict.APART or (
            self.notice.verdict is Verdict.BUSY and self.notice.is_early
        )
        if is_early and not verdict.culprits:
            return None  # what cannot be told early is told when the job's own rhythm is exceeded
        if self._will_wake([positions[rank] for rank in verdict.culprits if rank in positions]):
            return None
        found = observe_network(network)
        culprits = verdict.culprits
        if found and verdict.reason not in ("stopped", "ended"):
            culprits = ()  # who stands behind a broken path cannot help it
        data: dict[str, Any] = {
            **verdict.data,
            "missing": list(culprits),
            "kind": self.notice.verdict.value,
            "quiet_s": round(self.notice.quiet, 1),
            "patience_s": round(self.notice.patience, 1),
            "snapshot": taken.number,
        }
        if taken.error:
            data["no_stacks"] = taken.error
        text = f"nothing has moved for {self.notice.quiet:.0f} s: {verdict.text}"
        if self.notice.verdict is Verdict.STOPPED:
            text = verdict.text
        if taken.error:
            by_themselves = all(one.doing is not Doing.UNKNOWN for one in positions.values())
            text += f". {'Told by the ranks themselves' if by_themselves else 'No stacks'}: {taken.error}"
        fact = replace(verdict.fact(self.notice.quiet), ranks=culprits)
        return [*found, Observation("stall", culprits, text, data, (fact,))]

    def _will_wake(self, accused: Sequence[RankPosition]) -> bool:
        """Whether all accused are asleep for a short time that the script itself names, which is not over yet."""
        sleeping = [one.sleeps_s for one in accused if 0 < one.sleeps_s <= _NAP_S]
        return bool(accused) and len(sleeping) == len(accused) and self.notice.quiet < max(sleeping) + _NAP_OVER_S

    def _does_not_end(self, positions: Mapping[int, RankPosition]) -> bool:
        """Whether all that is left has been through with its script for long, and does nothing any more."""
        living = [one for one in positions.values() if one.doing is not Doing.ENDED]
        return all(one.leaving for one in living) and self.notice.quiet >= _AT_EXIT * self.notice.patience

    def _gets_nowhere(self, working: Mapping[int, int], held: frozenset[int]) -> bool:
        """Whether all that seem to work turn in a circle; or only wait, in a collective whose waiting takes processor time."""
        long = _LONG * self.notice.patience
        is_long = self.notice.quiet >= long and (
            bool(self.notice.moving) or self.notice.spent >= _OF_A_PROCESSOR * long
        )
        if not is_long and self.notice.moving:
            return False  # whoever reads and writes gets somewhere
        asked = [rank for rank in working.values() if rank not in self.notice.moving]
        with ThreadPoolExecutor(1) as beside:
            told = beside.submit(self._ask, asked)
            seen = looks_at(list(working), values=True)
            answers = told.result()
        parents = frozenset(pid for pid, found in children_of(working).items() if found)
        waiting = {
            pid
            for pid, rank in working.items()
            if rank not in self.notice.moving and waits(seen[pid], self._has_entered(rank))
        }
        turning = {pid for pid, rank in working.items() if answers.get(rank) == TURNS and pid not in parents}
        if not is_long and any(answers.get(rank) == CHANGES for pid, rank in working.items() if pid not in waiting):
            return False  # variables that py-spy does not show, such as attributes
        rest = {pid: seen[pid] for pid in working if pid not in waiting | turning}
        return not rest or spins(rest, held, parents, is_long=is_long)

    def _all_wait_apart(self) -> bool:
        """Whether every rank stands in a collective, always at the same line, and not all of them at one line."""
        if len(self._pids) < 2 or self._ended or any(self._has_entered(rank) is False for rank in self._pids):
            return False
        first = take_stacks(list(self._pids.values()), pause=False).values()
        entered = {pid: self._has_entered(rank) for rank, pid in self._pids.items()}
        if not all(one.main and doing_of(one.main.frames, entered[one.pid])[0] is Doing.COLLECTIVE for one in first):
            return False
        seen = looks_at(list(self._pids.values()))
        if not all(waits(stacks, entered[pid]) for pid, stacks in seen.items()):
            return False
        places = {
            next((frame for frame in reversed(looks[0].frames) if frame.is_user_code), None) for looks in seen.values()
        }
        return len(places) > 1 and None not in places

    def _has_entered(self, rank: int) -> bool | None:
        """Whether the rank has entered a collective that is not done; None where only its stack can tell."""
        look = self._looks.get(rank)
        return look.beat.outstanding if look is not None and look.beat is not None and look.beat.connected else None

    def _positions(self, taken: Snapshot) -> dict[int, RankPosition]:
        found: dict[int, RankPosition] = {}
        for rank, stacks in taken.stacks.items():
            found[rank] = self._position(rank, stacks, taken)
        for rank, code in self._ended.items():
            found[rank] = RankPosition(rank, Doing.ENDED, code=code)
        return found

    def _holds_the_lock(self, rank: int) -> bool:
        """No heartbeat from a rank that runs: its other threads do not get the interpreter's lock."""
        look = self._looks.get(rank)
        if look is None or look.beat is None or not look.beat.connected or look.process.state in "Tt":
            return False
        return look.time - look.beat.time > _NO_BEAT_S

    def _position(self, rank: int, stacks: ProcessStacks, taken: Snapshot) -> RankPosition:
        recorder = taken.recorders.get(rank)
        outstanding = any(state.waits_in is not None for state in recorder.values()) if recorder is not None else None
        if outstanding is None:
            outstanding = self._has_entered(rank)
        is_idle = rank not in self.notice.working
        workers = taken.workers.get(rank, ())
        position = position_of(rank, stacks, outstanding=outstanding, workers=workers, is_idle=is_idle, size=self._size)
        if rank in self.notice.stopped:
            return RankPosition(rank, Doing.STOPPED, frame=position.frame, pid=self._pids.get(rank, 0))
        return replace(position, holds_lock=self._holds_the_lock(rank))


def looks_at(pids: Sequence[int], *, values: bool = False) -> dict[int, list[Thread]]:
    """The main threads, several times within some seconds; a look that failed is left out. With `values` of their variables,
    for which a process must be paused for some milliseconds."""
    seen: dict[int, list[Thread]] = {pid: [] for pid in pids}
    for number in range(_LOOKS):
        if number:
            time.sleep(_BETWEEN_S)
        taken = take_stacks(pids, pause=values, values=values)
        if values:  # without variables, where they cannot be had
            taken |= take_stacks([pid for pid, stacks in taken.items() if stacks.error], pause=False)
        for pid, stacks in taken.items():
            if stacks.main is not None and stacks.main.frames:
                seen[pid].append(stacks.main)
    return seen


def waits(looks: Sequence[Thread], has_entered: bool | None = None) -> bool:
    """Whether a rank stands in a collective whenever it is looked at, called from the same line. Senders and receivers do so
    in a pipeline too."""
    calls = {doing_of(look.frames, has_entered) for look in looks}
    places = {tuple(frame for frame in look.frames if frame.is_user_code) for look in looks}
    if len(looks) < _FEWEST_LOOKS or len(calls) != 1 or len(places) != 1:
        return False
    ((doing, call),) = calls
    return doing is Doing.COLLECTIVE and not is_point_to_point(call)


def spins(
    seen: Mapping[int, Sequence[Thread]],
    held: frozenset[int] = frozenset(),
    parents: frozenset[int] = frozenset(),
    *,
    is_long: bool = False,
) -> bool:
    """Whether every one of these processes computes and gets nowhere.

    It turns round in a few lines of the user's own code without changing a variable. Where variables change or are not known, as
    in a count of words, where it never leaves one line, as in a call of native code, and for those of `held`, whose native code
    keeps the interpreter's lock, as a large pickle does, only time can tell. Who asks for a file again and again may wait for what its
    own child makes: `parents` have such. An evaluation is seen at many places, and deep inside
    the framework.
    """
    for pid, looks in seen.items():
        own = [_own_frame(look) for look in looks]
        places = {(frame.file, frame.line) for frame in own if frame is not None}
        turns = None not in own and 0 < len(places) <= _FEW_LINES
        asks = any(not look.frames[-1].is_user_code for look in looks)
        if pid in held:
            if not is_long or len({look.frames for look in looks}) != 1:
                return False
        elif (
            not turns
            or (asks and pid in parents)
            or (not is_long and ((len(places) == 1 and not asks) or changes(looks)))
        ):
            return False
    return bool(seen)


def _own_frame(look: Thread) -> Frame | None:
    """Where a thread turns in the user's code: there itself, or in a question of the standard library's that takes microseconds, such as
    whether a file exists, so that who is found in it asks again and again. None if it is elsewhere."""
    for depth, frame in enumerate(reversed(look.frames)):
        if frame.is_user_code:
            return frame
        if depth >= _FEW_LINES or not (_QUESTION.match(frame.function) and _ASKED.search(frame.path)):
            return None
    return None


def changes(looks: Sequence[Thread]) -> bool:
    """Whether a variable of the user's functions differs between looks, or cannot be seen: py-spy shows none of a module's."""
    found: dict[tuple[int, str, str], str] = {}
    for look in looks:
        own = [
            (frame.function, told) for frame, told in zip(look.frames, look.values, strict=False) if frame.is_user_code
        ]
        if not own or own[-1][0] == "<module>":
            return True
        for depth, (function, told) in enumerate(own):
            for name, value in told.items():
                if found.setdefault((depth, function, name), value) != value:
                    return True
    return False


def pauses_by_itself(positions: Mapping[int, RankPosition]) -> bool:
    """Whether nobody waits for a peer, and what is left is asleep by its own wish, or the last to finish."""
    living = [one for one in positions.values() if one.doing is not Doing.ENDED]
    if any(one.doing is not Doing.ELSEWHERE for one in living):
        return False
    over = any(one.doing is Doing.ENDED and one.code == 0 for one in positions.values())
    return over or all(one.sleeps for one in living)
