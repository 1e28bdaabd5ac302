"""From a request to agents that have reported, agree with us, and have the job's files."""

from __future__ import annotations

import contextlib
import queue
import re
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from phalanx import private
from phalanx.backends import can_shrink, check_options
from phalanx.backends.backend import BackendError, Plan, Reach, Request, Started, State
from phalanx.remote.addresses import addresses_at, listen_at, network_host
from phalanx.remote.agreement import differences, interpreter
from phalanx.remote.bundle_receiver import BundleReceiver
from phalanx.remote.job import Job, StartError
from phalanx.remote.lines import Hears, Line, Lines
from phalanx.remote.link import MOST_PAYLOAD, Message
from phalanx.sources.secrets import redact

TOKEN_FILE = "token"
_FOR_AGENT = re.compile(
    r"PATH|PYTHONPATH|PYTHONHOME|LD_LIBRARY_PATH|VIRTUAL_ENV|TMPDIR|\w+_VISIBLE_DEVICES|\w+_SOCKET_IFNAME|PHALANX_(?!TOKEN)\w+"
)
_LOOK = 0.3  # seconds between two looks at the engine, and at whether the user has given up
_WORDS_AFTER_LOSS = 3.0  # seconds in which an engine may still say why an agent is gone
_LISTENS = {Reach.LOOPBACK: lambda driver: "127.0.0.1", Reach.NETWORK: network_host}


def agent_command(job: Job) -> tuple[str, ...]:
    """What the engine is to start on each node."""
    dial = () if job.backend.REACH is Reach.STREAMS else ("--dial",)
    there = None if job.backend.NAME == "local" else job.agent_python or job.spec.python
    return (there or sys.executable, "-m", "phalanx.remote.agent", *dial)


def request_of(job: Job, folder: Path, token: str = "", driver: str = "DRIVER:PORT") -> Request:
    """What the engine is asked for. Without a token it is good for a plan only."""
    # Ranks get their variables over the agent's line; on the way to the agent they would stand in some process' arguments.
    environment = {name: value for name, value in job.spec.environment.items() if _FOR_AGENT.fullmatch(name)}
    if job.backend.REACH is not Reach.STREAMS:
        environment |= {"PHALANX_DRIVER": driver, "PHALANX_TOKEN_FILE": str(folder.absolute() / TOKEN_FILE)}
    return Request(
        name=job.name,
        workers=job.workers,
        agent=agent_command(job),
        folder=folder.absolute(),
        gpus=job.spec.gpus,
        environment=environment,
        token=token,
        timeout=job.spec.timeout,
        options=job.options,
    )


def plan_job(job: Job, folder: Path) -> Plan:
    """The engine's plan, with nothing done. Raises BackendError."""
    check_options(job.backend, job.options)
    plan = job.backend.plan(request_of(job, folder))
    if job.spec.fewest is not None and not can_shrink(job.backend):
        raise BackendError(f"{job.backend.NAME} cannot go on with fewer nodes: give one number of workers")
    if job.framework == "horovod" and len(set(plan.layout)) > 1:
        raise BackendError(f"Horovod wants as many workers on each node as on the others, and not {plan.layout}")
    return plan


class AgentPool:
    """The nodes of one job: engaged once, or again after one was lost."""

    def __init__(
        self,
        job: Job,
        receiver: BundleReceiver,
        hears: Hears,
        say: Callable[[str], None],
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._job = job
        self._receiver = receiver
        self._say = say
        self._is_cancelled = is_cancelled
        self._token = secrets.token_urlsafe(32)
        self.lines = Lines(self._token, receiver, hears)
        self.by_node: dict[int, Line] = {}
        self.layout: tuple[int, ...] = ()
        self.started: Started | None = None
        self.state = State.STARTING
        self.reason = ""

    def engage(self) -> None:
        """Have agents started and wait until all of them are ready for work. Raises StartError or BackendError."""
        job = self._job
        driver = ""
        if (where := _LISTENS.get(job.backend.REACH)) is not None:
            host = where(str(job.options.get("driver") or ""))
            driver = addresses_at(host, listen_at(host, self.lines.listen))
        request = request_of(job, self._receiver.job, self._token, driver)
        plan = job.backend.plan(request)
        self.layout = plan.layout
        self._write_files(plan)
        self.started = job.backend.start(plan, request)
        for node, streams in self.started.streams().items():
            with contextlib.suppress(OSError):  # it is gone already; what it said is told by the engine
                streams.to_agent.write(f"{self._token}\n".encode())
                streams.to_agent.flush()
            self.lines.add(streams, node)
        self._wait_for_all(plan)
        self._check()
        self._send_files()

    def _write_files(self, plan: Plan) -> None:
        """The plan's files, and the token where agents connect by themselves; readable by the user alone."""
        try:
            if self._job.backend.REACH is not Reach.STREAMS:
                _write_private(self._receiver.job / TOKEN_FILE, self._token + "\n", 0o600)
            for file in plan.files:
                _write_private(file.path, file.text, file.mode)
        except OSError as error:
            raise StartError(f"cannot write {error.filename}: {error.strerror}") from error

    def _wait_for_all(self, plan: Plan) -> None:
        assert self.started is not None
        ran_since: float | None = None
        lost_at: float | None = None
        while len(self.by_node) < len(plan.layout):
            self._stop_if_cancelled()
            with contextlib.suppress(queue.Empty):
                line, message = self.lines.events.get(timeout=_LOOK)
                if message is not None and message.kind == "node":
                    self._seat(line, message, plan)
                    continue
                if message is None and line.node is not None and lost_at is None:
                    self.by_node.pop(line.node, None)
                    self.lines.refused += [line.why] if line.why and not self.lines.refused else []
                    lost_at = time.monotonic()
            engine, self.reason = self.started.follow()
            if engine in (State.FAILED, State.DONE, State.CANCELLED):
                raise StartError(self._why_not(plan, engine))
            if lost_at is not None and time.monotonic() - lost_at > _WORDS_AFTER_LOSS:
                raise StartError(self._why_not(plan, State.FAILED))
            self.state = State.QUEUED if engine is State.QUEUED else State.STARTING
            if engine is State.RUNNING:
                ran_since = ran_since or time.monotonic()
                if time.monotonic() - ran_since > self._job.start_within:
                    raise StartError(self._why_not(plan, engine))

    def _stop_if_cancelled(self) -> None:
        if self._is_cancelled():
            raise StartError("cancelled before it ran")

    def _seat(self, line: Line, message: Message, plan: Plan) -> None:
        """Give an agent its place: the one it was started for, else the first that is free."""
        told = line.node if line.node is not None else message.data.get("node")
        free = [node for node in range(len(plan.layout)) if node not in self.by_node]
        node = told if isinstance(told, int) and told in free else (free[0] if told is None else None)
        if node is None:
            line.link.hang_up()  # one more than was asked for, or the same number twice
            return
        first = sum(plan.layout[:node])
        line.node, line.ranks = node, tuple(range(first, first + plan.layout[node]))
        line.host = plan.nodes[node] if node < len(plan.nodes) else str(message.data.get("host"))
        if any(other.host == line.host for other in self.by_node.values()):
            line.host += f"#{node}"  # two agents on one machine: a verdict must be able to tell them apart
        line.address = str(message.data.get("address"))
        self.by_node[node] = line

    def _why_not(self, plan: Plan, engine: State) -> str:
        missing = [node for node in range(len(plan.layout)) if node not in self.by_node]
        names = ", ".join(plan.nodes[node] if node < len(plan.nodes) else f"node {node}" for node in missing)
        reason = "; ".join(filter(None, [self.reason, *self.lines.refused[-1:]]))
        if engine is State.RUNNING:
            return f"no word from {names} within {self._job.start_within:g} s" + (f" ({reason})" if reason else "")
        return f"not all agents came up: {reason or f'{names}: {engine}'}"

    def _check(self) -> None:
        """Interpreters and packages agree, or the user does not mind."""
        job = self._job
        if job.agreement == "off" or (job.backend.NAME == "local" and job.spec.python is None):
            return
        here, told = interpreter(), []
        for line in self.by_node.values():
            _tell(line, "check", packages=list(job.packages), python=job.spec.python)
        for line, message in self._answers("packages"):
            found = differences(here, message.data["interpreter"], job.packages, message.data.get("found") or {})
            told += [f"{line.host}: {'; '.join(found)}"] if found else []
        if told and job.agreement == "warn":
            self._say("the nodes differ from here: " + " | ".join(sorted(told)))
        elif told:
            raise StartError(
                "the nodes differ from here: " + " | ".join(sorted(told)) + ". Install the same there, "
                'say which interpreter to use (python=…), or go on regardless (agreement="warn")'
            )

    def _send_files(self) -> None:
        for name, path in (("call.pickle", self._job.call), ("project.tar", self._job.project)):
            if path is not None:
                for line in self.by_node.values():
                    _send_file(line, name, path)
        if self._job.project is not None:
            for line in self.by_node.values():
                _tell(line, "unpack")

    def _answers(self, kind: str) -> list[tuple[Line, Message]]:
        """One answer of this kind from each node. Raises StartError where one refuses or is lost."""
        found: dict[int, tuple[Line, Message]] = {}
        deadline = time.monotonic() + self._job.start_within
        while len(found) < len(self.by_node):
            self._stop_if_cancelled()
            try:
                line, message = self.lines.events.get(timeout=_LOOK)
            except queue.Empty:
                if time.monotonic() < deadline:
                    continue
                missing = sorted(one.host for node, one in self.by_node.items() if node not in found)
                raise StartError(f"no answer from {', '.join(missing)}") from None
            if line.node is None:
                if message is not None:
                    line.link.hang_up()  # one more than was asked for
                continue
            if message is None:
                raise StartError(f"{line.host} was lost before the job ran" + (f": {line.why}" if line.why else ""))
            if message.kind == "refused":
                raise StartError(f"{line.host}: {message.data.get('text')}")
            if message.kind == kind:
                found[line.node] = (line, message)
        return [found[node] for node in sorted(found)]

    def prepare(self, ports: int, each_rank: bool, store: bool) -> tuple[list[int], int | None]:
        """Have ports held: one for each rank where it runs, or all of them on node 0. Returns them and the store's."""
        for node, line in self.by_node.items():
            count = len(line.ranks) if each_rank else (ports if node == 0 else 0)
            _tell(line, "prepare", ports=count, store=store and node == 0)
        answers = self._answers("ready")
        found = [int(port) for _, message in answers for port in message.data["ports"]]
        return found, answers[0][1].data.get("store_port")

    def dismiss(self) -> None:
        """Part from the agents, and leave nothing of them behind. What the engine has said is kept as evidence."""
        if self.started is None:  # the engine took nothing
            self.lines.close()
            return
        started, self.started = self.started, None
        for line in self.by_node.values():
            if line.is_open:
                with contextlib.suppress(OSError):
                    line.link.send("bye")
        # Agents that heard it end by themselves; where one is missing, the engine is asked to see to it, then told.
        is_broken = len(self.by_node) < len(self.layout) or any(not line.is_open for line in self.by_node.values())
        patience = 2 * self._job.spec.grace + 5.0
        began = time.monotonic()
        steps = [
            began + (1.0 if is_broken else patience),
            began + patience + (0.0 if is_broken else self._job.spec.grace),
        ]
        while started.follow()[0] in (State.RUNNING, State.QUEUED, State.STARTING):
            if steps and time.monotonic() >= steps[0]:
                steps.pop(0)
                started.cancel()
            if time.monotonic() > began + patience + 2 * self._job.spec.grace:
                break
            time.sleep(0.05)
        self.lines.close()
        for name, text in started.collect().items():
            with contextlib.suppress(OSError):
                private.write_text(self._receiver.folder / f"engine-{name}.log", redact(text))

    def hosts(self) -> list[str]:
        """By rank, where it can be reached from the other nodes."""
        lines = [self.by_node[node] for node in sorted(self.by_node)]
        is_local = [line.address.startswith("127.") for line in lines]
        mixed = any(is_local) and not all(is_local)  # the driver's own machine is called 127.0.0.1 by itself alone
        names = [line.host if mixed and local else line.address for line, local in zip(lines, is_local, strict=True)]
        return [name for line, name in zip(lines, names, strict=True) for _ in line.ranks]


def _send_file(line: Line, name: str, path: Path) -> None:
    with path.open("rb") as file:
        buffer, offset = bytearray(MOST_PAYLOAD), 0
        while count := file.readinto(buffer):
            _tell(line, "put", memoryview(buffer)[:count], name=name, offset=offset)
            offset += count


def _tell(line: Line, kind: str, payload: bytes | memoryview = b"", /, **data: Any) -> None:
    """Raises StartError where the node is gone."""
    try:
        line.link.send(kind, payload, **data)
    except OSError as error:
        raise StartError(f"{line.host} was lost before the job ran: {line.why or error}") from error


def _write_private(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode)
    path.chmod(mode)
    path.write_text(text, encoding="utf-8")
