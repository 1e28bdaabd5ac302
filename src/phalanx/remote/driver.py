"""The driver of a job: has agents started, tells them what to do, hears how their ranks fare, and says what became of it."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phalanx.backends.backend import BackendError, Plan, State
from phalanx.frameworks.launching import load_launchable, needs_store, seats_of, serves
from phalanx.remote.briefing import briefing
from phalanx.remote.gathering import Gathering, plan_job
from phalanx.remote.job import Exit, Job, Outcome, StartError
from phalanx.remote.judging import Judging
from phalanx.remote.keeping import Keeping
from phalanx.remote.lines import Line
from phalanx.remote.link import Message
from phalanx.remote.shrinking import without_lost
from phalanx.remote.viewer import Viewer
from phalanx.run.ending import Reason
from phalanx.sources.secrets import redact_command

_TICK = 0.1
_OVERSLEPT = (
    5.0  # seconds between two looks, after which it was us who did not listen: a stopped process, a closed laptop
)


class Driver:
    """Runs one job. `run` belongs to one thread; `cancel` and the properties may be used from others."""

    def __init__(self, job: Job, folder: Path, viewer: Viewer) -> None:
        self.job = job
        self._viewer = viewer
        self.keeping = Keeping(folder, viewer.stage.say)
        self._gathering: Gathering | None = None
        self._cancelled = threading.Event()
        self._forced = threading.Event()
        self._state = State.QUEUED
        self.attempt = 0
        self._exits: dict[int, Exit] = {}
        self._reason: Reason | None = None
        self._ends_at: float | None = None
        self._has_ended_all = False
        self._first_lost: tuple[int, ...] = ()
        self._hosts: dict[int, str] = {}  # by rank
        self._judging = Judging(self.keeping, viewer.stage)
        self._deadline: float | None = None
        self._looked = time.monotonic()

    def plan(self) -> Plan:
        """What the engine would do. Raises BackendError."""
        return plan_job(self.job, self.keeping.job)

    def cancel(self, force: bool = False) -> None:
        """End the job on all nodes; `force` does not wait for last words."""
        self._cancelled.set()
        if force:
            self._forced.set()

    def ranks(self) -> Mapping[int, Mapping[str, Any]]:
        """How the ranks fare, as the nodes last told."""
        found: dict[int, Mapping[str, Any]] = {}
        for line in list(self._gathering.by_node.values()) if self._gathering is not None else ():
            found |= line.status
        return found

    @property
    def state(self) -> State:
        """Where the job is. What an engine keeps in its queue has not started."""
        if self._state is State.STARTING and self._gathering is not None:
            return self._gathering.state
        return self._state

    @property
    def engine_says(self) -> str:
        """The engine's reason for the state, as `Resources` of a queue."""
        return self._gathering.reason if self._gathering is not None else ""

    def run(self) -> Outcome:
        """Run the job to its end, retries included. Nothing of it is left when this returns. Raises StartError."""
        self._describe()
        try:
            reason = self._attempts()
        except (StartError, BackendError) as error:
            self._state = State.CANCELLED if self._cancelled.is_set() else State.FAILED
            self.keeping.writer.finish(2, str(error))
            raise
        finally:
            if self._gathering is not None:
                self._gathering.dismiss()
            self.keeping.close()
            self.keeping.clean()
            self._viewer.flush(everything=True)
        self.keeping.writer.finish(reason.status, reason.text)
        report = self._judging.final(needed=reason.status != 0 and reason.kind != "cancelled")
        self._state = {"done": State.DONE, "cancelled": State.CANCELLED}.get(reason.kind, State.FAILED)
        return Outcome(
            reason, self.keeping.folder, self.keeping.results, report, dict(self._exits), self._hosts,
            self.job.workers, self.attempt + 1,
        )  # fmt: skip

    def _describe(self) -> None:
        job = self.job
        roles = [f"{seat.role}:{seat.index}" for seat in seats_of(job.workers, job.roles)]
        self.keeping.writer.begin(
            {
                "command": redact_command(job.command) if not job.is_call else [job.name],
                "name": job.name,
                "size": job.workers,
                "framework": job.framework,
                "roles": roles if job.roles else [],
                "backend": job.backend.NAME,
            }
        )

    def _attempts(self) -> Reason:
        reason: Reason | None = None
        for number in range(self.job.retries + 1):
            try:
                if self._gathering is None or not all(line.is_open for line in self._gathering.by_node.values()):
                    self._engage()
                ports = self._hold_ports()
            except (StartError, BackendError) as error:
                if reason is None or self._cancelled.is_set():
                    raise
                self._viewer.stage.say(f"cannot start again: {error}")
                self.keeping.writer.amend({"size": len(self._hosts)})  # the evidence is of those that ran
                return reason  # why it failed is worth more than why it could not be tried again
            self.attempt = number
            reason = self._run_attempt(number, *ports)
            if reason.kind == "cannot-start":
                raise StartError(reason.text)
            again = reason.may_restart and number < self.job.retries and not self._cancelled.is_set()
            self.keeping.writer.end_attempt(reason.text, list(reason.ranks), again)
            if not again:
                break
            self._shrink()
            self._viewer.stage.say(f"{reason.text}: starting again ({number + 1} of {self.job.retries})")
        assert reason is not None
        return reason

    def _shrink(self) -> None:
        """Leave out nodes that were lost, where that is allowed."""
        if self._gathering is not None and (found := without_lost(self.job, self._gathering, self._first_lost)):
            self.job, names = found
            self.keeping.writer.amend({"size": self.job.workers})
            self._viewer.stage.say(f"going on with {self.job.workers} workers, without {', '.join(names)}")

    def _engage(self) -> None:
        if self._gathering is not None:
            self._gathering.dismiss()
        self._state = State.STARTING
        say, hears = self._viewer.stage.say, self._viewer.hear
        self._gathering = Gathering(self.job, self.keeping, hears, say, self._cancelled.is_set)
        self._gathering.engage()

    def _hold_ports(self) -> tuple[list[int], int | None]:
        """The ports at which the ranks meet, and the store's."""
        assert self._gathering is not None
        framework = load_launchable()[self.job.framework]
        count = framework.ports_needed(self.job.workers)
        return self._gathering.prepare(count, count == self.job.workers, needs_store(framework))

    def _run_attempt(self, number: int, ports: list[int], store_port: int | None) -> Reason:
        gathering = self._gathering
        assert gathering is not None
        self._exits, self._reason, self._ends_at, self._has_ended_all = {}, None, None, False
        self._first_lost = ()
        self._hosts = {rank: line.host for line in gathering.by_node.values() for rank in line.ranks}
        self._judging.forget()
        self.keeping.close()
        self.keeping.begin_attempt(number, self.job.workers)
        self._viewer.begin(self.job.workers)
        run_id = self.keeping.folder.name
        for line in gathering.by_node.values():
            with contextlib.suppress(OSError):  # a node that is gone is heard of as any other that vanishes
                line.link.send("start", **briefing(self.job, gathering, line, number, ports, store_port, run_id))
        self._state = State.RUNNING
        if self._deadline is None and self.job.timeout is not None:
            self._deadline = time.monotonic() + self.job.timeout
        return self._follow(gathering)

    def _follow(self, gathering: Gathering) -> Reason:
        busy = set(gathering.by_node)
        while busy:
            try:
                line, message = gathering.lines.events.get(timeout=_TICK)
            except queue.Empty:
                pass
            else:
                self._hear(line, message, busy)
            self._viewer.flush()
            self._tick(gathering, busy)
        self._viewer.flush(everything=True)
        return self._reason or Reason("done", "all ranks ended well", 0)

    def _hear(self, line: Line, message: Message | None, busy: set[int]) -> None:
        if line.node is None or line.node not in busy:
            return
        if message is None:
            self._lost(line)
            busy.discard(line.node)
            return
        data = message.data
        match message.kind:
            case "exit":
                self._ended(line, data)
            case "observation":
                self._judging.heard(line, data)
                if (
                    data.get("what") in ("stall", "recovered", "straggler", "network")
                    and data.get("text")
                    and self._reason is None
                ):
                    where = f"{line.host}: " if len(busy) > 1 else ""
                    self._viewer.stage.say(f"{where}{data['text']}")
            case "stalled":
                self._judging.stalled(line.node, data.get("reached") or ())
            case "say":
                self._viewer.stage.say(f"{line.host}: {data.get('text')}")
            case "refused":
                self._begin_end(Reason("cannot-start", f"{line.host}: {data.get('text')}", 126), now=True)
                busy.discard(line.node)
            case "done":
                busy.discard(line.node)
                if self._reason is None and data.get("reason") != "done":
                    ranks = tuple(int(rank) for rank in data.get("ranks", ()))
                    self._begin_end(Reason(str(data["reason"]), str(data["text"]), int(data["status"]), ranks))

    def _ended(self, line: Line, data: Mapping[str, Any]) -> None:
        rank, code = int(data["rank"]), int(data["code"])
        if rank not in line.ranks or rank in self._exits:
            return
        order = self.keeping.exit(rank, dict(data))
        by = data.get("by")
        self._exits[rank] = Exit(rank, code, str(data.get("how")), order, str(by) if by else None, line.host)
        self._viewer.ended(rank)
        self._end_service()
        if code != 0 and not by:
            status = code if code > 0 else 128 - code
            where = f" on {line.host}" if self._gathering and len(self._gathering.by_node) > 1 else ""
            self._begin_end(Reason("failed", f"rank {rank}{where} ended with {data.get('how')}", status, (rank,)))

    def _end_service(self) -> None:
        """Parameter servers wait for ever; when the ranks that they serve are done, on whatever node, their nodes are told."""
        seats = seats_of(self.job.workers, self.job.roles)
        served = [seat.rank for seat in seats if not serves(seat, seats)]
        if self.job.roles and self._gathering is not None and all(rank in self._exits for rank in served):
            for line in self._gathering.by_node.values():
                with contextlib.suppress(OSError):
                    line.link.send("over", attempt=self.attempt)

    def _lost(self, line: Line) -> None:
        """A node without a word: its ranks are gone, and that is what broke the job, unless it was already ending."""
        ranks = f"rank{'s' if len(line.ranks) > 1 else ''} {', '.join(map(str, line.ranks))}"
        text = f"the node {line.host} with {ranks} vanished: " + (line.why or "its agent's line broke off")
        # Some engines end all nodes as soon as they miss one: whoever goes after the first goes because of it.
        by = self._reason.text if self._reason is not None else None
        for rank in line.ranks:
            if rank not in self._exits:
                facts = {
                    "schema": "phalanx.exit/1", "rank": rank, "code": -9, "how": "signal 9 (SIGKILL)", "at": time.time(),
                    "seconds": None, "by": by, "why": None if by else {"cause": "node-lost", "node": line.host, "text": text},
                }  # fmt: skip
                order = self.keeping.exit(rank, facts)
                self._exits[rank] = Exit(rank, -9, text, order, by, line.host)
                self._viewer.ended(rank)
        if by is None:
            self._first_lost = line.ranks
            self._begin_end(Reason("failed", text, 137, line.ranks))

    def _begin_end(self, reason: Reason, now: bool = False) -> None:
        """The first reason stands. Peers on other nodes have the grace to say what they saw."""
        if self._reason is None:
            self._reason = reason
            self._ends_at = time.monotonic() + (0.0 if now else self.job.grace)

    def _tick(self, gathering: Gathering, busy: set[int]) -> None:
        now = time.monotonic()
        overslept = now - self._looked > _OVERSLEPT
        self._looked = now
        # A job that ends does not wait long for whom nobody hears any more.
        patience = self.job.silent_for if self._reason is None else min(self.job.silent_for, 2 * self.job.grace)
        for node in list(busy):
            line = gathering.by_node[node]
            line.heard = now if overslept else line.heard
            if now - line.heard > patience:
                line.is_open, line.why = False, f"no word for {patience:g} s"
                line.link.hang_up()
                self._lost(line)  # at once: closing a pipe does not wake its reader
                busy.discard(node)
        if self._cancelled.is_set() and (self._reason is None or self._reason.kind != "cancelled"):
            self._reason, self._ends_at = Reason("cancelled", "cancelled", 130), now
            self._has_ended_all = False
        if self._deadline is not None and now >= self._deadline and self._reason is None:
            self._begin_end(Reason("timeout", f"the time limit of {self.job.timeout:g} s was reached", 124), now=True)
        running = {node: gathering.by_node[node] for node in busy}
        blamed = self._judging.look(now, running, is_ending=self._reason is not None)
        if blamed is not None and self.job.on_stall == "abort" and self._reason is None:
            self._begin_end(Reason("stall", "ended at a stall", 1, blamed), now=True)
        if self._ends_at is not None and now >= self._ends_at and not self._has_ended_all:
            self._has_ended_all = True
            self._end_all(gathering, busy, force=False)
        if self._forced.is_set():
            self._forced.clear()
            self._end_all(gathering, busy, force=True)

    def _end_all(self, gathering: Gathering, busy: set[int], force: bool) -> None:
        reason = self._reason or Reason("cancelled", "cancelled", 130)
        for node in busy:
            with contextlib.suppress(OSError):
                gathering.by_node[node].link.send(
                    "end", reason=reason.kind, text=reason.text, status=reason.status, force=force, attempt=self.attempt
                )
