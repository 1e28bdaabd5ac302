"""The watch as the supervisor knows it: samples all ranks, notices stalls, takes snapshots, says what it saw."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from phalanx import private
from phalanx.model.bundle import HEARTBEAT, SAMPLES, collectives_file, rank_folder
from phalanx.model.facts import make_fact
from phalanx.run.observer import Observation, RankStatus, Setup
from phalanx.run.watch.deaths import DeathWatch
from phalanx.run.watch.given_up import GivenUp
from phalanx.run.watch.heartbeat import FOLDER, HeartbeatFile, who_turns
from phalanx.run.watch.inside.phalanx_last_call import CALL, MODULE
from phalanx.run.watch.investigation import StallInvestigation
from phalanx.run.watch.journals import Journal, journals_in
from phalanx.run.watch.lag import Lag
from phalanx.run.watch.last_words import call_of, call_waited_in, failure_of, module_of
from phalanx.run.watch.limits import Limits
from phalanx.run.watch.look import RankLook, look_at
from phalanx.run.watch.output_progress import OutputProgress
from phalanx.run.watch.parting import Partings
from phalanx.run.watch.processes import children_of
from phalanx.run.watch.recorder import read_dump
from phalanx.run.watch.slow_places import SlowPlaces
from phalanx.run.watch.snapshot import Snapshot, add_native, take_snapshot
from phalanx.run.watch.stall import Notice, StallDetector, Verdict
from phalanx.run.watch.stragglers import StragglerWatch
from phalanx.run.watch.traffic import Traffic

_SAMPLE_S = 5.0  # between two lines of samples a rank
_BETWEEN_LOOKS_S = 30.0  # at ranks that seem to work
_BETWEEN_EARLY_LOOKS_S = 5.0
_NATIVE_AFTER_S = 6.0
_FAMILIES_EVERY_S = 1.0
_LIMITS_EVERY = 4  # ticks
_CLOSELY_AFTER_S = 2.0  # without progress each thread is looked at; a job of quicker steps never pays for it
_BEFORE_S = 4.5  # it takes as long to see who moves data, and that must be known when patience ends
_LOOKS_A_TICK, _MOST_ROUNDS = 8, 4  # so many ranks are looked at in one tick; each at least every fourth tick


class Watch:
    """Implements the supervisor's Observer. All methods are called from one thread and return soon."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._beats: dict[int, HeartbeatFile] = {}
        self._output = {rank: OutputProgress() for rank in setup.watched}
        self._pids: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        self._looks: dict[int, RankLook] = {}
        self._moved: dict[int, float] = {}  # when a rank last got on
        self._detector = StallDetector(setup.stall_after, setup.stall_at_most)
        self._stragglers = StragglerWatch()
        self._slow_places = SlowPlaces()
        self._deaths = DeathWatch()
        self._limits = Limits()
        self._lag = Lag()
        self._given_up = GivenUp(setup.size)
        self._partings = Partings(setup)
        self._investigation: StallInvestigation | None = None
        self._snapshots = 0
        self._sampled = 0.0
        self._ticks = 0
        self._broken = False
        self._told_stall = False
        self._suspected = False
        self._families: dict[int, list[int]] = {}
        self._families_noted = 0.0
        self._traffic = Traffic()
        self._bytes: Mapping[int, int] = {}  # over the network, by process
        self._next_look: dict[Verdict, float] = {}
        self._native: threading.Thread | None = None
        self._closed = threading.Event()
        self._parting: list[Observation] = []  # told with the next look

    def environment(self, rank: int) -> Mapping[str, str]:
        """What makes Python start the watch inside; nothing if that is off or nobody would listen."""
        if not self._setup.inside:
            return {}
        record = rank_folder(self._setup.attempt, rank).absolute() / HEARTBEAT
        return {"PYTHONPATH": str(FOLDER), "PHALANX_INSIDE": f"{rank}:{self._setup.size}:{record}"}

    def started(self, pids: Mapping[int, int]) -> None:
        """Begin to look."""
        self._pids = dict(pids)
        self._deaths.begin(pids.values())
        if self._setup.inside:
            for rank in pids:
                self._beats[rank] = HeartbeatFile(rank_folder(self._setup.attempt, rank) / HEARTBEAT)

    def heard(self, rank: int, line: bytes) -> None:
        """Count a line, and keep it for the next tick."""
        output = self._output.get(rank)
        if output is not None:
            output.line(line)

    def ended(self, rank: int, code: int) -> Mapping[str, Any]:
        """Why the rank is gone."""
        if code == 0 and not self._ended:
            self._parting += map(self._slow_places.add_to, self._stragglers.at_the_end())
        self._ended[rank] = code
        pid = self._pids.pop(rank, None)
        look = self._looks.pop(rank, None)
        self._lag.forget(rank)
        if pid is None:
            return {}
        last = self._output[rank].last if rank in self._output else ()
        why = self._deaths.reason(pid, code, look, last)
        folder = rank_folder(self._setup.attempt, rank)
        call = call_of(folder / CALL) if code else {}
        if code and not call and self._snapshots:
            call = call_waited_in(read_dump(folder / collectives_file(self._snapshots)))
        now = time.monotonic()
        self._given_up.ended(rank, code, tuple(last), call.get("call") or {}, now, self._detector.quiet(now))
        failure = failure_of(last) if code else {}
        self._parting += [*self._limits.tell(rank), *module_of(folder / MODULE, rank)] if code else []
        beat = self._beats[rank].read() if rank in self._beats else None
        step = self._output[rank].step if rank in self._output else None
        self._partings.ended(rank, code, failure, beat, step)
        return {**failure, **call, **why} if code else why

    def tick(self) -> Sequence[Observation]:
        """One look at every rank; at a part of them, where there are many. A watch that breaks says so once and rests."""
        if self._broken:
            return ()
        try:
            return self._tick(time.monotonic())
        except Exception as error:
            self._broken = True
            return [Observation("watch-failed", (), f"the watch failed and rests: {type(error).__name__}: {error}")]

    def _tick(self, now: float) -> list[Observation]:
        self._ticks += 1
        rounds = min(-(-len(self._setup.watched) // _LOOKS_A_TICK), _MOST_ROUNDS)
        self._note_families(now)
        closely = self._detector.quiet(now) >= _CLOSELY_AFTER_S
        for rank, pid in self._pids.items():
            if rank % rounds == self._ticks % rounds:
                output = self._output[rank]
                output.digest(now)
                before, family, traffic = self._looks.get(rank), self._families.get(pid), self._bytes.get(pid)
                look = look_at(pid, self._beats.get(rank), output, before, now, family, traffic, closely=closely)
                if look is not None:
                    if before is None or look.signs.progress != before.signs.progress:
                        self._moved[rank] = now
                    self._looks[rank] = look
                    self._lag.note(rank, look, output.step)
        self._deaths.sample(self._looks.values())
        if self._ticks % _LIMITS_EVERY == 0:
            self._limits.note(self._pids)
        signs = {rank: look.signs for rank, look in self._looks.items() if rank in self._pids}
        found, self._parting = self._parting, []
        if self._setup.notices_stalls and len(signs) == len(self._pids):  # before, the first round is not over
            for notice in self._detector.update(now, signs):
                found += self._on_notice(notice, now)
        found += self._finished_investigation(now)
        if not self._told_stall:
            found += self._given_up.tell(now, living=bool(self._pids))
            found += self._partings.tell(living=bool(self._pids))
        found += map(self._slow_places.add_to, self._stragglers.update(now, self._looks))
        if (suspect := self._stragglers.suspect) is not None and suspect in self._pids:
            self._slow_places.note(now, suspect, self._pids[suspect])
        found += self._deaths.children_killed(self._looks)
        if now - self._sampled >= _SAMPLE_S:
            self._sampled = now
            self._write_samples()
        return found

    def _note_families(self, now: float) -> None:
        """When nothing moves, all children are wanted, also those that other threads started: PyTorch's compilers are. And
        what they all send and receive: a download takes hardly any processor time."""
        patience = self._detector.patience
        if self._detector.quiet(now) < min(patience / 2, patience - _BEFORE_S):
            self._families, self._bytes = {}, {}
        elif now - self._families_noted >= _FAMILIES_EVERY_S:
            self._families, self._families_noted = children_of(self._pids.values()), now
            self._bytes = self._traffic.note(self._families) or {}

    def snapshot(self, why: str) -> int:
        """Taken now, while the caller waits."""
        taken = self._take(native=False)
        self._given_up.seen(taken)
        return taken.number

    def status(self) -> Mapping[int, RankStatus]:
        """From the last tick."""
        now = time.monotonic()
        return {
            rank: RankStatus(
                look.beat.step if look.beat is not None and look.beat.step is not None else self._output[rank].step,
                self._output[rank].steps_per_second,
                look.memory,
                self._lag.behind(rank),
                "step" if self._lag.counts_steps(rank) else "collective",
                round(now - self._moved.get(rank, now), 1),
                look.beat.phase_name if look.beat is not None else "",
            )
            for rank, look in sorted(self._looks.items())
        }

    def close(self) -> None:
        """Release files and threads."""
        self._closed.set()
        if self._investigation is not None:
            self._investigation.join(1.0)
        for beat in self._beats.values():
            beat.close()
        self._deaths.close()

    def _on_notice(self, notice: Notice, now: float) -> list[Observation]:
        if notice.verdict is Verdict.RECOVERED:
            if not self._told_stall:
                return []  # it had only been looked at
            self._told_stall = False
            text = f"the job moves again after {notice.quiet:.0f} s"
            fact = make_fact("stall.recovered", {"seconds": round(notice.quiet)}, source="watch")
            return [Observation("recovered", (), text, {"quiet_s": round(notice.quiet, 1)}, (fact,))]
        if now < self._next_look.get(notice.verdict, 0.0):
            self._detector.forgive(notice.verdict)
            return []
        if self._investigation is None:
            self._investigation = StallInvestigation(
                notice,
                self._setup.size,
                self._take,
                dict(self._pids),
                dict(self._looks),
                self._ended,
                lambda ranks: who_turns({rank: self._beats[rank] for rank in ranks if rank in self._beats}),
                self._left_behind(),
                self._setup.roles,
                {rank: step for rank, output in self._output.items() if (step := output.step) is not None},
                frozenset(rank for rank, output in self._output.items() if "error" in failure_of(output.last)),
            )
            self._investigation.start()
            self._suspected = False
            if notice.verdict in (Verdict.STALL, Verdict.STOPPED):  # the others mostly turn out to be nothing
                return self._suspect()
        else:
            self._detector.forgive(notice.verdict)
        return []

    def _left_behind(self) -> dict[int, Journal]:
        """What ranks that have ended left of their calls."""
        return journals_in(self._setup.attempt, self._ended)

    def _suspect(self) -> list[Observation]:
        """Once for each closer look, as soon as it seems that a verdict will be wanted: to make it ready takes a while, too."""
        if self._suspected:
            return []
        self._suspected = True
        return [Observation("suspicion", (), "")]

    def _finished_investigation(self, now: float) -> list[Observation]:
        """What a closer look, which ran beside, found out."""
        if self._investigation is None:
            return []
        if not self._investigation.finished:
            return self._suspect() if self._investigation.is_likely else []
        investigation, self._investigation = self._investigation, None
        if investigation.observations is None:  # the ranks get somewhere, or may: look again later
            notice = investigation.notice
            is_early = notice.is_early and notice.verdict in (Verdict.APART, Verdict.BUSY)
            self._next_look[notice.verdict] = now + (_BETWEEN_EARLY_LOOKS_S if is_early else _BETWEEN_LOOKS_S)
            self._detector.forgive(notice.verdict)
            return []
        if (
            investigation.notice.verdict is not Verdict.STOPPED
            and self._detector.quiet(now) < investigation.notice.quiet
        ):
            return []  # it went on while it was looked at
        self._told_stall = True
        self._partings.close()  # ranks that are ended at a stall tell nothing further
        # the closer look took its time, which counts for who waits for a verdict
        told = {"told_after_s": round(self._detector.quiet(now), 1)}
        return [
            replace(one, data={**one.data, **told}) if one.kind == "stall" else one
            for one in investigation.observations
        ]

    def _take(self, *, native: bool = True) -> Snapshot:
        self._snapshots += 1
        number, pids = self._snapshots, dict(self._pids)
        taken = take_snapshot(number, self._setup.attempt, pids, self._beats)
        if native and (self._native is None or not self._native.is_alive()):
            self._native = threading.Thread(target=self._add_native, args=(number, pids), daemon=True)
            self._native.start()
        return taken

    def _add_native(self, number: int, pids: Mapping[int, int]) -> None:
        """Later, and only while the job still stands: the report comes first."""
        if not self._closed.wait(_NATIVE_AFTER_S):
            add_native(number, self._setup.attempt, {rank: pid for rank, pid in pids.items() if rank in self._pids})

    def _write_samples(self) -> None:
        lines = [
            json.dumps({"time": round(time.time(), 1), "rank": rank, **look.as_sample()})
            for rank, look in self._looks.items()
        ]
        if not lines:
            return
        try:
            with open(self._setup.attempt / SAMPLES, "a", encoding="utf-8", opener=private.opener) as file:
                file.write("\n".join(lines) + "\n")
        except OSError:
            pass  # a full disk is said by the supervisor
