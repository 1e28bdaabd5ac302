"""The closer look at a job that seems to stand still. It takes a second or two, so it runs beside the supervisor's loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from phalanx.model.fact import Fact
from phalanx.model.ranks import speak_of
from phalanx.run.observer import Observation
from phalanx.run.watch.deviation import find_deviation
from phalanx.run.watch.inside.phalanx_turning import CHANGES, TURNS
from phalanx.run.watch.journals import Journal
from phalanx.run.watch.look import RankLook
from phalanx.run.watch.neighbours import find_other_neighbour
from phalanx.run.watch.network import observe_network, view_network
from phalanx.run.watch.processes import children_of, waits_for_thread
from phalanx.run.watch.rank_position import Doing, RankPosition, doing_of, position_of
from phalanx.run.watch.roots import find_dissent, find_other_name
from phalanx.run.watch.servers import find_idle_server
from phalanx.run.watch.snapshot import Snapshot
from phalanx.run.watch.spinning import looks_at, spins, waits
from phalanx.run.watch.stacks import ProcessStacks, take_stacks
from phalanx.run.watch.stall import Notice, Verdict
from phalanx.run.watch.stall_verdict import StallVerdict, judge_stall
from phalanx.run.watch.starts import find_stranger

_LONG = 10  # by how many times the job's patience must be exceeded before who might get somewhere is held to turn in a circle
_OF_A_PROCESSOR = 0.4  # what it must have had of one in that time: where it gets less, all it does takes longer
_AT_EXIT = 3  # the same for what a rank does after its script: a last upload may rest for a while
_NAP_S = 60.0  # what a script may sleep, in figures, without being taken for one that hangs
_NAP_OVER_S = 3.0  # after which it would have moved
_IDLE_SERVER_S = 10.0  # a task that comes late, as after a short sleep, is no idle one
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
        left: Mapping[int, Journal] | None = None,
        roles: Mapping[int, str] | None = None,
        last_steps: Mapping[int, int] | None = None,
        raised: frozenset[int] = frozenset(),
    ) -> None:
        self.notice = notice
        self.observations: Sequence[Observation] | None = ()
        self.is_likely = False  # becomes true while it still looks, when it will probably say something
        self._size, self._take, self._pids, self._looks, self._ended = size, take, pids, looks, dict(ended)
        self._ask = ask
        self._roles = roles or {}
        self._left = left or {}  # what ranks that have ended left of their calls
        self._raised = raised  # ranks whose output ends with a traceback
        self._last_steps = last_steps or {}  # that they told of in their output
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
        speak_of(self._roles)  # in this thread
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
        if self.notice.verdict is Verdict.APART and not (
            self._all_wait_apart() or self._a_server_idles() or self._has_left_by_an_exception()
        ):
            return None
        self.is_likely = True
        taken = self._take()
        positions = self._positions(taken)
        dissent = (
            find_deviation({**self._left, **taken.journals}, frozenset(self._ended), self._size)
            or find_idle_server(taken.stacks, self._roles, self._ended)
            or find_dissent(taken.stacks, self._size)
            or find_other_name(taken.stacks, self._size)
            or find_other_neighbour(taken.stacks, self._size)
            or find_stranger(taken.stacks, self._size)
        )
        verdict = judge_stall(positions, taken.recorders, self._size, dissent)
        if (dissent is None and self._only_pauses(positions)) or not self._is_worth_telling(verdict, positions):
            return None
        return self._told(verdict, positions, taken, observe_network(network))

    def _only_pauses(self, positions: Mapping[int, RankPosition]) -> bool:
        is_stall = self.notice.verdict is Verdict.STALL
        return is_stall and pauses_by_itself(positions) and not self._does_not_end(positions)

    def _is_worth_telling(self, verdict: StallVerdict, positions: Mapping[int, RankPosition]) -> bool:
        kind = self.notice.verdict
        if kind is Verdict.BUSY and not verdict.waiting:
            return False  # nobody waits: everybody computes, each for itself
        is_early = kind is Verdict.APART or (kind is Verdict.BUSY and self.notice.is_early)
        if is_early and not verdict.culprits:
            return False  # what cannot be told early is told when the job's own rhythm is exceeded
        return not self._will_wake([positions[rank] for rank in verdict.culprits if rank in positions])

    def _told(
        self,
        verdict: StallVerdict,
        positions: Mapping[int, RankPosition],
        taken: Snapshot,
        found: Sequence[Observation],
    ) -> list[Observation]:
        """What goes into the bundle: what the network shows, then the stall."""
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
            text += f". No stacks: {taken.error}"
        facts: tuple[Fact, ...] = (replace(verdict.fact(self.notice.quiet), ranks=culprits),)
        if culprits and all(rank in self._raised and positions[rank].leaving for rank in culprits):
            facts = ()  # its exception tells why it left; that it waits for its peers at the end of the process does not
        return [*found, Observation("stall", culprits, text, data, facts)]

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

    def _a_server_idles(self) -> bool:
        """Whether who should serve does something else, always at the same place and without computing: nobody has to know the job's rhythm to see that."""
        if not self._roles:
            return False
        time.sleep(
            max(0.0, _IDLE_SERVER_S - self.notice.quiet)
        )  # sooner than with the next look; if it moves, nothing is told
        ranks = {pid: rank for rank, pid in self._pids.items()}
        first = {ranks[pid]: stacks for pid, stacks in take_stacks(list(ranks), pause=False).items()}
        found = find_idle_server(first, self._roles, self._ended)
        if found is None or found.culprits & set(self.notice.working):
            return False
        seen = looks_at([self._pids[rank] for rank in found.culprits])
        places = [
            {tuple(frame for frame in look.frames if frame.is_user_code) for look in looks} for looks in seen.values()
        ]
        return all(len(one) == 1 for one in places)

    def _has_left_by_an_exception(self) -> bool:
        """Whether a rank that raised is through with its script and is kept by what it waits for at its end, such as JAX's farewell."""
        living = {self._pids[rank]: rank for rank in self._raised if rank in self._pids}
        stacks = take_stacks(list(living), pause=False) if living else {}
        return any(
            position_of(rank, stacks[pid], outstanding=None).leaving for pid, rank in living.items() if pid in stacks
        )

    def _has_entered(self, rank: int) -> bool | None:
        """Whether the rank has entered a collective that is not done; None where only its stack can tell."""
        look = self._looks.get(rank)
        return look.beat.outstanding if look is not None and look.beat is not None and look.beat.connected else None

    def _positions(self, taken: Snapshot) -> dict[int, RankPosition]:
        found: dict[int, RankPosition] = {}
        for rank, stacks in taken.stacks.items():
            found[rank] = self._position(rank, stacks, taken)
        for rank, code in self._ended.items():
            found[rank] = RankPosition(rank, Doing.ENDED, code=code, after=self._how_far(rank))
        return found

    def _how_far(self, rank: int) -> str:
        """Up to which pass of its loops a rank that has ended called its peers, or which step it told of last."""
        journal = self._left.get(rank)
        if journal is not None and journal.last_passes:
            return f"after {journal.last_passes}"
        step = self._last_steps.get(rank)
        return f"after step {step}" if step is not None else ""

    def _has_met_by_jax(self, rank: int) -> bool:
        look = self._looks.get(rank)
        return look is not None and look.beat is not None and look.beat.groups.keys() == {"jax"}

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
        position = position_of(
            rank,
            stacks,
            outstanding=outstanding,
            workers=workers,
            is_idle=is_idle,
            size=self._size,
            compiled=self._has_met_by_jax(rank) and waits_for_thread(stacks.pid),
        )
        journal = taken.journals.get(rank)
        if journal is not None and position.doing is Doing.COLLECTIVE and (made := journal.waits_in) is not None:
            position = replace(position, call=made.op)
        if position.leaving:
            position = replace(position, after=self._how_far(rank))
        if rank in self.notice.stopped:
            return RankPosition(rank, Doing.STOPPED, frame=position.frame, pid=self._pids.get(rank, 0))
        return replace(position, holds_lock=self._holds_the_lock(rank))


def pauses_by_itself(positions: Mapping[int, RankPosition]) -> bool:
    """Whether nobody waits for a peer, and what is left is asleep by its own wish, or the last to finish."""
    living = [one for one in positions.values() if one.doing is not Doing.ENDED]
    if any(one.doing is not Doing.ELSEWHERE for one in living):
        return False
    over = any(one.doing is Doing.ENDED and one.code == 0 for one in positions.values())
    return over or all(one.sleeps for one in living)
