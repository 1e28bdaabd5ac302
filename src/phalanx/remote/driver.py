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
from phalanx.remote.agent_pool import AgentPool, plan_job
from phalanx.remote.bundle_receiver import BundleReceiver
from phalanx.remote.job import Exit, Job, Outcome, StartError
from phalanx.remote.lines import Line
from phalanx.remote.link import Message
from phalanx.remote.shrinking import without_lost
from phalanx.remote.stall_coordinator import StallCoordinator
from phalanx.remote.start_message import start_message
from phalanx.remote.viewer import Viewer
from phalanx.run.attempts import RestartError, run_attempts
from phalanx.run.ending import Reason
from phalanx.run.spec import OnStall

_TICK = 0.1
_OVERSLEPT = (
    5.0  # seconds between two looks, after which it was us who did not listen: a stopped process, a closed laptop
)


class Driver:
    """Runs one job. `run` belongs to one thread; `cancel` and the properties may be used from others."""

    def __init__(self, job: Job, folder: Path, viewer: Viewer) -> None:
        self.job = job
        self._viewer = viewer
        self.receiver = BundleReceiver(folder, viewer.stage.say)
        self._pool: AgentPool | None = None
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
        self._stalls = StallCoordinator(self.receiver, viewer.stage)
        self._deadline: float | None = None
        self._looked = time.monotonic()

    def plan(self) -> Plan:
        """What the engine would do. Raises BackendError."""
        return plan_job(self.job, self.receiver.job)

    def cancel(self, force: bool = False) -> None:
        """End the job on all nodes; `force` does not wait for last words."""
        self._cancelled.set()
        if force:
            self._forced.set()

    def ranks(self) -> Mapping[int, Mapping[str, Any]]:
        """How the ranks fare, as the nodes last told."""
        found: dict[int, Mapping[str, Any]] = {}
        for line in list(self._pool.by_node.values()) if self._pool is not None else ():
            found |= line.status
        return found

    @property
    def state(self) -> State:
        """Where the job is. What an engine keeps in its queue has not started."""
        if self._state is State.STARTING and self._pool is not None:
            return self._pool.state
        return self._state

    @property
    def engine_says(self) -> str:
        """The engine's reason for the state, as `Resources` of a queue."""
        return self._pool.reason if self._pool is not None else ""

    def run(self) -> Outcome:
        """Run the job to its end, retries included. Nothing of it is left when this returns. Raises StartError."""
        self.receiver.writer.begin(self.job.manifest())
        try:
            reason = self._attempts()
        except (StartError, BackendError) as error:
            self._state = State.CANCELLED if self._cancelled.is_set() else State.FAILED
            self.receiver.writer.finish(2, str(error))
            raise
        finally:
            if self._pool is not None:
                self._pool.dismiss()
            self.receiver.close()
            self.receiver.clean()
            self._viewer.flush(everything=True)
        self.receiver.writer.finish(reason.status, reason.text)
        report = self._stalls.final(needed=reason.status != 0 and reason.kind != "cancelled")
        self._state = {"done": State.DONE, "cancelled": State.CANCELLED}.get(reason.kind, State.FAILED)
        return Outcome(
            reason, self.receiver.folder, self.receiver.results, report, dict(self._exits), self._hosts,
            self.job.workers, self.attempt + 1,
        )  # fmt: skip

    def _attempts(self) -> Reason:
        return run_attempts(
            self.job.spec.max_restarts,
            self._attempt,
            self.receiver.writer,
            self._viewer.stage.say,
            lambda: not self._cancelled.is_set(),
        )

    def _attempt(self, number: int) -> Reason:
        """Raises StartError or BackendError, and RestartError for them after the first attempt."""
        try:
            if number:
                self._shrink()
            if self._pool is None or not all(line.is_open for line in self._pool.by_node.values()):
                self._engage()
            ports = self._hold_ports()
        except (StartError, BackendError) as error:
            if not number or self._cancelled.is_set():
                raise
            self.receiver.writer.amend({"size": len(self._hosts)})  # the evidence is of those that ran
            raise RestartError(str(error)) from error
        self.attempt = number
        reason = self._run_attempt(number, *ports)
        if reason.kind == "cannot-start":
            raise StartError(reason.text)
        return reason

    def _shrink(self) -> None:
        """Leave out nodes that were lost, where that is allowed."""
        if self._pool is not None and (found := without_lost(self.job, self._pool, self._first_lost)):
            self.job, names = found
            self.receiver.writer.amend({"size": self.job.workers})
            self._viewer.stage.say(f"going on with {self.job.workers} workers, without {', '.join(names)}")

    def _engage(self) -> None:
        if self._pool is not None:
            self._pool.dismiss()
        self._state = State.STARTING
        say, hears = self._viewer.stage.say, self._viewer.hear
        self._pool = AgentPool(self.job, self.receiver, hears, say, self._cancelled.is_set)
        self._pool.engage()

    def _hold_ports(self) -> tuple[list[int], int | None]:
        """The ports at which the ranks meet, and the store's."""
        assert self._pool is not None
        framework = load_launchable()[self.job.framework]
        count = framework.ports_needed(self.job.workers)
        return self._pool.prepare(count, count == self.job.workers, needs_store(framework))

    def _run_attempt(self, number: int, ports: list[int], store_port: int | None) -> Reason:
        pool = self._pool
        assert pool is not None
        self._exits, self._reason, self._ends_at, self._has_ended_all = {}, None, None, False
        self._first_lost = ()
        self._hosts = {rank: line.host for line in pool.by_node.values() for rank in line.ranks}
        self._stalls.forget()
        self.receiver.close()
        self.receiver.begin_attempt(number, self.job.workers)
        self._viewer.begin(self.job.workers)
        run_id = self.receiver.folder.name
        for line in pool.by_node.values():
            with contextlib.suppress(OSError):  # a node that is gone is heard of as any other that vanishes
                line.link.send("start", **start_message(self.job, pool, line, number, ports, store_port, run_id))
        self._state = State.RUNNING
        if self._deadline is None and self.job.spec.timeout is not None:
            self._deadline = time.monotonic() + self.job.spec.timeout
        return self._follow(pool)

    def _follow(self, pool: AgentPool) -> Reason:
        busy = set(pool.by_node)
        while busy:
            try:
                line, message = pool.lines.events.get(timeout=_TICK)
            except queue.Empty:
                pass
            else:
                self._hear(line, message, busy)
            self._viewer.flush()
            self._tick(pool, busy)
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
                self._stalls.heard(line, data)
                if (
                    data.get("what") in ("stall", "recovered", "straggler", "network")
                    and data.get("text")
                    and self._reason is None
                ):
                    where = f"{line.host}: " if len(busy) > 1 else ""
                    self._viewer.stage.say(f"{where}{data['text']}")
            case "stalled":
                self._stalls.stalled(line.node, data.get("reached") or ())
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
        order = self.receiver.exit(rank, dict(data))
        by = data.get("by")
        self._exits[rank] = Exit(rank, code, str(data.get("how")), order, str(by) if by else None, line.host)
        self._viewer.ended(rank)
        self._end_service()
        if code != 0 and not by:
            status = code if code > 0 else 128 - code
            where = f" on {line.host}" if self._pool and len(self._pool.by_node) > 1 else ""
            self._begin_end(Reason("failed", f"rank {rank}{where} ended with {data.get('how')}", status, (rank,)))

    def _end_service(self) -> None:
        """Parameter servers wait for ever; when the ranks that they serve are done, on whatever node, their nodes are told."""
        seats = seats_of(self.job.workers, self.job.spec.roles)
        served = [seat.rank for seat in seats if not serves(seat, seats)]
        if self.job.spec.roles and self._pool is not None and all(rank in self._exits for rank in served):
            for line in self._pool.by_node.values():
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
                order = self.receiver.exit(rank, facts)
                self._exits[rank] = Exit(rank, -9, text, order, by, line.host)
                self._viewer.ended(rank)
        if by is None:
            self._first_lost = line.ranks
            self._begin_end(Reason("failed", text, 137, line.ranks))

    def _begin_end(self, reason: Reason, now: bool = False) -> None:
        """The first reason stands. Peers on other nodes have the grace to say what they saw."""
        if self._reason is None:
            self._reason = reason
            self._ends_at = time.monotonic() + (0.0 if now else self.job.spec.grace)

    def _tick(self, pool: AgentPool, busy: set[int]) -> None:
        now = time.monotonic()
        overslept = now - self._looked > _OVERSLEPT
        self._looked = now
        # A job that ends does not wait long for whom nobody hears any more.
        patience = self.job.silent_for if self._reason is None else min(self.job.silent_for, 2 * self.job.spec.grace)
        for node in list(busy):
            line = pool.by_node[node]
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
            self._begin_end(
                Reason("timeout", f"the time limit of {self.job.spec.timeout:g} s was reached", 124), now=True
            )
        running = {node: pool.by_node[node] for node in busy}
        blamed = self._stalls.look(now, running, is_ending=self._reason is not None)
        if blamed is not None and self.job.spec.on_stall is OnStall.ABORT and self._reason is None:
            self._begin_end(Reason("stall", "ended at a stall", 1, blamed), now=True)
        if self._ends_at is not None and now >= self._ends_at and not self._has_ended_all:
            self._has_ended_all = True
            self._end_all(pool, busy, force=False)
        if self._forced.is_set():
            self._forced.clear()
            self._end_all(pool, busy, force=True)

    def _end_all(self, pool: AgentPool, busy: set[int], force: bool) -> None:
        reason = self._reason or Reason("cancelled", "cancelled", 130)
        for node in busy:
            with contextlib.suppress(OSError):
                pool.by_node[node].link.send(
                    "end", reason=reason.kind, text=reason.text, status=reason.status, force=force, attempt=self.attempt
                )
