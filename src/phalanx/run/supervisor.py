"""One attempt of a job: starts its ranks, carries their output, asks the watch, and sees to it that all of them end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phalanx.frameworks.launching import Meeting, Seat, serves
from phalanx.model import bundle as layout
from phalanx.model.ranks import name_ranks, ranges
from phalanx.run.bundle import BundleWriter
from phalanx.run.children import Children
from phalanx.run.ending import Ending, Reason, describe_code, describe_death, status_of
from phalanx.run.meeting import meet_here
from phalanx.run.observer import GIVEN_UP, Observation, Observer
from phalanx.run.output import Output
from phalanx.run.plan import Plan, what_is_set
from phalanx.run.screen import Screen, is_terminal
from phalanx.run.signals import Signals
from phalanx.run.spec import OnStall
from phalanx.run.status import status_line
from phalanx.sources.secrets import secret_values

_TICK = 0.5
_BEFORE_SNAPSHOT = 0.5  # after a death: peers that die of it at once need no stacks


def _no_order() -> Reason | None:
    return None


@dataclass(slots=True)
class _Rank:
    seat: Seat
    process: subprocess.Popen[bytes]
    started: float
    code: int | None = None
    was_sent: int | None = None  # the last signal that we sent it
    room: int | None = None  # memory that outlives it


@dataclass(slots=True)
class Attempt:
    """All that one start of the job needs; `run` does it."""

    number: int
    plan: Plan
    folder: Path
    writer: BundleWriter
    children: Children
    screen: Screen
    signals: Signals
    observer: Observer
    deadline: float | None
    on_stall: Callable[[Observation], None]
    poll: Callable[[], None]
    on_straggler: Callable[[], None] = lambda: None
    on_suspicion: Callable[[], None] = lambda: None  # something may be wrong
    meet: AbstractContextManager[Meeting] | None = None  # where the ranks meet, if not on this machine alone
    order: Callable[[], Reason | None] = _no_order  # a reason to end that comes from elsewhere
    all_seats: tuple[Seat, ...] = ()  # of the whole job, where some are on other nodes
    is_over: Callable[[], bool] = lambda: True  # whether nobody on another node still needs a parameter server
    _ranks: dict[int, _Rank] = field(default_factory=dict)
    _ended: int = 0
    _snapshot_at: float | None = None
    _began: float = 0.0

    def run(self) -> Reason:
        """Run it to its end. Every process of it is gone when this returns."""
        output = Output(self.number, [seat.rank for seat in self.plan.seats], self.screen, self)
        output.selector.register(self.signals.wakes, 1, None)
        ending = Ending(self.plan.spec.grace)
        self._began = time.monotonic()
        try:
            meet = self.meet or meet_here(self.plan, self.children, self.writer.folder.name, self.number)
            with meet as meeting:
                try:
                    self._start(output, meeting)
                    self.observer.started({rank: one.process.pid for rank, one in self._ranks.items()})
                except OSError as error:
                    text = f"cannot start {self.plan.argv[0]}: {error.strerror}"
                    ending.begin(Reason("cannot-start", text, 126), time.monotonic())
                    ending.force(time.monotonic())
                self._loop(output, ending)
        finally:
            # Whatever happens above, nobody is left behind.
            living = [one for one in self._ranks.values() if one.code is None]
            self.children.signal_all((one.process.pid for one in living), signal.SIGKILL)
            self.children.sweep()
            for one in living:
                one.process.wait()
            self._close_rooms()
            output.close()
            self.observer.close()
            self.writer.close_outputs()
        return ending.reason or Reason("done", "all ranks ended well", 0)

    def _close_rooms(self) -> None:
        for rank, one in self._ranks.items():
            if one.room is not None and self.plan.recorder is not None:
                self.plan.recorder.close_room(self.folder, rank, one.room)

    def write_output(self, number: int, rank: int, data: bytes, is_error: bool) -> None:
        """A piece of a rank's output, for the bundle."""
        self.writer.write_output(number, rank, data, is_error)

    def heard(self, rank: int, line: bytes) -> None:
        """A line of a rank's output, for the watch."""
        self.observer.heard(rank, line)

    def _start(self, output: Output, meeting: Meeting) -> None:
        for seat in self.plan.seats:
            self.writer.open_output(self.folder, self.number, seat.rank)
            variables = self._variables(seat, meeting)
            room = self.plan.recorder.open_room() if self.plan.recorder is not None else None
            watched = self._watched(seat.rank, variables, room)
            if seat is self.plan.seats[0] and self.number == 0 and self.meet is None:
                self.screen.say(what_is_set(seat.rank, variables))
            pipes = output.open_pipes(seat.rank, secret_values(variables))
            # Standard input is one: it goes to rank 0, and not from a terminal, which belongs to another session.
            stdin = 0 if seat.rank == 0 and not is_terminal(0) else None
            try:
                process = self.children.start_rank(
                    self.plan.argv, watched, pipes, stdin, keep=() if room is None else (room,)
                )
            finally:
                for end in pipes:
                    os.close(end)
            self._ranks[seat.rank] = _Rank(seat, process, time.time(), room=room)
            facts = {"rank": seat.rank, "pid": process.pid, "host": os.uname().nodename, "started": time.time()}
            facts |= {"role": f"{seat.role}:{seat.index}"} if self.plan.spec.roles else {}
            self.writer.write_process(self.folder, seat.rank, facts, variables)

    def _variables(self, seat: Seat, meeting: Meeting) -> dict[str, str]:
        variables = self.plan.variables(seat, meeting)
        if self.plan.framework.NAME == "torch":
            # PyTorch's own record of an exception, where the script uses `@record`.
            file = layout.rank_folder(self.folder, seat.rank).resolve() / "error.json"
            variables.setdefault("TORCHELASTIC_ERROR_FILE", str(file))
        return variables

    def _watched(self, rank: int, variables: Mapping[str, str], room: int | None) -> dict[str, str]:
        """The variables with those of the inside watch, which takes them away before the script sees them."""
        found = dict(variables)
        if (recorder := self.plan.recorder) is not None:
            found |= recorder.variables(self.folder, rank, self.plan.size, found, room)
        for name, value in self.observer.environment(rank).items():
            before = found.get(name)
            found[name] = f"{value}{os.pathsep}{before}" if name == "PYTHONPATH" and before else value
        return found

    def _loop(self, output: Output, ending: Ending) -> None:
        next_tick = time.monotonic() + _TICK
        while self._living() and not self._only_servers_left(ending):
            now = time.monotonic()
            wait = max(0.0, next_tick - now)
            if (until := ending.wait(now)) is not None:
                wait = min(wait, until)
            output.pump(wait)
            self._reap(output, ending)
            self._obey(ending)
            now = time.monotonic()
            if now >= next_tick:
                self._tick(ending, now)
                next_tick = max(next_tick + _TICK, time.monotonic() + _TICK / 2)
            if (number := ending.due(time.monotonic())) is not None:
                self._send(number)
        self._end_servers(output, ending)
        self._note(ending)  # what was seen of the whole job

    def _living(self) -> list[int]:
        return [rank for rank, one in self._ranks.items() if one.code is None]

    def _only_servers_left(self, ending: Ending) -> bool:
        seats = self.all_seats or self.plan.seats
        is_idle = ending.reason is None and all(serves(self._ranks[rank].seat, seats) for rank in self._living())
        return is_idle and self.is_over()

    def _end_servers(self, output: Output, ending: Ending) -> None:
        """Parameter servers wait for ever; when the others are done their service is over, which is no failure."""
        deadline = time.monotonic() + self.plan.spec.grace
        self._send(signal.SIGTERM)
        while self._living() and time.monotonic() < deadline:
            output.pump(0.1)
            self._reap(output, ending, is_over=True)
        self._send(signal.SIGKILL)
        while self._living():
            output.pump(0.05)
            self._reap(output, ending, is_over=True)

    def _send(self, number: int) -> None:
        living = self._living()
        for rank in living:
            self._ranks[rank].was_sent = number
        pids = [self._ranks[rank].process.pid for rank in living]
        self.children.signal_all(pids, number)
        if number != signal.SIGKILL:
            self.children.signal_all(pids, signal.SIGCONT)  # who is stopped would take note only when it goes on

    def _reap(self, output: Output, ending: Ending, is_over: bool = False) -> None:
        gone = [(code, rank) for rank in self._living() if (code := self._ranks[rank].process.poll()) is not None]
        # Of those that died within one look, the odd ones first: an exit with status 1 is what victims have.
        for code, rank in sorted(gone, key=lambda pair: (pair[0] in (0, 1), pair[1])):
            one = self._ranks[rank]
            one.code = code
            output.drain(rank)
            if code != 0 and one.was_sent is None and not is_over:  # what its peers make of it may take minutes
                self.screen.say(f"{name_ranks([rank])} {describe_death(code, time.time() - one.started)}")
            if code != 0 and ending.reason is None and not is_over:
                why = Reason("failed", f"rank {rank} ended with {describe_code(code)}", status_of(code), (rank,))
                ending.begin(why, time.monotonic())
                self._snapshot_at = time.monotonic() + _BEFORE_SNAPSHOT
                self.on_suspicion()
            self._write_exit(one, ending, is_over)

    def _write_exit(self, one: _Rank, ending: Ending, is_over: bool) -> None:
        code, rank = int(one.code or 0), one.seat.rank
        by = None
        if one.was_sent is not None and code != 0:
            by = "end of service" if is_over and ending.reason is None else (ending.reason or _UNKNOWN).text
        facts: dict[str, Any] = {
            "schema": "phalanx.exit/1",
            "rank": rank,
            "code": code,
            "how": describe_code(code),
            "at": time.time(),
            "seconds": round(time.time() - one.started, 3),
            "order": self._ended,
            "by": by,  # whom the launcher ended it for; null if it ended by itself
            "why": dict(self.observer.ended(rank, code)),
        }
        self._ended += 1
        self.writer.write_exit(self.folder, rank, facts)

    def _obey(self, ending: Ending) -> None:
        if (order := self.order()) is not None:
            ending.begin(order, time.monotonic(), request=signal.SIGTERM)
            if order.kind == "killed":
                ending.force(time.monotonic())
        for number in self.signals.take():
            now = time.monotonic()
            name = signal.Signals(number).name
            if ending.reason is not None and ending.reason.kind == "interrupted":
                ending.force(now)
                continue
            if ending.reason is None:
                self.screen.say(f"{name}: ending {len(self._living())} ranks (again to kill them at once)")
            ending.begin(Reason("interrupted", f"interrupted by {name}", 128 + number), now, request=number)

    def _note(self, ending: Ending) -> None:
        """Write down what the watch saw, say it, and act on it."""
        for seen in self.observer.tick():
            if seen.kind == "suspicion":
                self.on_suspicion()
                continue
            is_past = seen.data.get("kind") == GIVEN_UP
            if ending.reason is not None and seen.kind in ("stall", "recovered", "straggler") and not is_past:
                continue  # ranks that are being ended neither stand still nor move again
            self.writer.write_observation(self.folder, seen)
            if seen.kind == "stall" and not is_past:
                self._stalled(seen, ending)
            elif seen.kind in ("stall", "recovered", "straggler", "network", "calls") and seen.text:
                self.screen.say(seen.text)
            if seen.kind == "straggler":
                self.on_straggler()

    def _tick(self, ending: Ending, now: float) -> None:
        self._note(ending)
        if self._snapshot_at is not None and now >= self._snapshot_at:
            self._snapshot_at = None
            if self._living():
                self._snapshot(ending.reason.text if ending.reason else "a death", ending)
        if self.deadline is not None and now >= self.deadline and ending.reason is None:
            self._snapshot("the time limit", ending)
            why = Reason("timeout", f"the time limit of {self.plan.spec.timeout:g} s was reached", 124)
            ending.begin(why, now, request=signal.SIGTERM)
        self.poll()
        self.screen.flush()
        living = set(self._living())
        if self.screen.has_status:
            status = self.observer.status()
            self.screen.set_status(status_line(status, living, self.plan.size, now - self._began))

    def _stalled(self, seen: Observation, ending: Ending) -> None:
        wish = self.plan.spec.on_stall
        if wish is OnStall.IGNORE:
            return
        self.screen.say(seen.text or "the ranks stand still")
        number = seen.data.get("snapshot") or self._snapshot("a stall", ending)
        if wish is OnStall.DUMP:
            self.screen.say(f"stacks of all ranks: {self.folder}/rank*/{layout.stacks_file(number)}")
            return
        self.on_stall(seen)
        if wish is OnStall.ABORT:
            accused = f" because of rank {ranges(seen.ranks)}" if seen.ranks else ""
            why = Reason("stall", f"ended at a stall{accused}", 1, seen.ranks)
            ending.begin(why, time.monotonic(), request=signal.SIGTERM)

    def _snapshot(self, why: str, ending: Ending) -> int:
        with contextlib.suppress(Exception):  # stacks are worth much, but not the job
            if (recorder := self.plan.recorder) is not None:
                recorder.ask(self.folder)
            number = self.observer.snapshot(why)
            self.writer.write_observation(
                self.folder, Observation("snapshot", tuple(self._living()), f"stacks at {why}", {"number": number})
            )
            return number
        return 0


_UNKNOWN = Reason("unknown", "the end of the job", 1)
