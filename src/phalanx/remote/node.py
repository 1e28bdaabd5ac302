"""One attempt of the job on this node: its ranks under the supervisor of `phalanx run`, its evidence sent to the driver."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil

from phalanx.frameworks.launching import Meeting, Place, Seat, seats_of
from phalanx.model import bundle as layout
from phalanx.remote.devices import devices_for
from phalanx.remote.link import Link
from phalanx.remote.orders import Orders
from phalanx.remote.paths import reached
from phalanx.remote.shipping import NoScreen, ShippingWriter, environment_without_ours
from phalanx.remote.start_message import StartMessage
from phalanx.remote.worker import EXCEPTION, RESULT, VARIABLE, describe
from phalanx.run.children import Children, end_helper
from phalanx.run.ending import Reason
from phalanx.run.meeting import start_store
from phalanx.run.observer import Observation, Setup, make_observer
from phalanx.run.plan import Plan, make_plan
from phalanx.run.ports import Ports, loopback_interface
from phalanx.run.signals import Signals
from phalanx.run.supervisor import Attempt

_BEAT = 1.0
_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")


class ReservedPorts:
    """What this node holds for an attempt before it starts: ports, and the store if it is ours to serve."""

    def __init__(self, address: str, count: int, store: bool, children: Children) -> None:
        self._ports = Ports(count, address)
        self.store_port: int | None = None
        self._helper = None
        if store:
            self._helper, self.store_port = start_store(children, address)
        self.interface = _interface_of(address)

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that are held."""
        return self._ports.numbers

    def close(self) -> None:
        """Give all of it back."""
        self._ports.close()
        if self._helper is not None:
            end_helper(self._helper)
            self._helper = None


class NodeAttempt:
    """This node's ranks of one attempt."""

    def __init__(
        self,
        start: StartMessage,
        reserved: ReservedPorts,
        scratch: Path,
        link: Link,
        children: Children,
        orders: Orders,
    ) -> None:
        self._start = start
        self._reserved = reserved
        self._scratch = scratch
        self._link = link
        self._children = children
        self._orders = orders
        self._number = start.attempt
        self._folder = layout.attempt_folder(scratch, self._number)
        self._nodes = len(start.layout)
        self._all_seats = seats_of(start.size, start.spec.roles)
        self._writer = ShippingWriter(
            scratch, link, start.spec.secrets.values(), is_alone=self._nodes == 1, root=start.root
        )
        self._observer: Any = None
        self._beat = 0.0
        self._has_sent_start = False

    def run(self) -> Reason:
        """Run this node's ranks to their end; all their files are with the driver when this returns. Raises PlanError."""
        plan = self._plan()
        ranks = tuple(seat.rank for seat in plan.seats)
        for rank in ranks:
            layout.rank_folder(self._folder, rank).mkdir(parents=True, exist_ok=True)
        spec = plan.spec
        setup = Setup(
            attempt=self._folder,
            size=self._start.size,
            framework=plan.framework.NAME,
            command=plan.argv,
            inside=spec.inside,
            stall_after=spec.stall_after,
            stall_at_most=spec.stall_at_most,
            ranks=ranks if self._nodes > 1 else (),
            roles=plan.roles,
        )
        self._observer = make_observer(setup, lambda text: self._link.send("say", text=text))
        with Signals() as signals:
            attempt = Attempt(
                number=self._number,
                plan=plan,
                folder=self._folder,
                writer=self._writer,
                children=self._children,
                screen=NoScreen(),
                signals=signals,
                observer=self._observer,
                deadline=None,  # the driver keeps the time, for all nodes alike
                on_stall=self._stalled,
                poll=self._poll,
                meet=self._meet(plan),
                order=lambda: self._orders.end(self._number),
                all_seats=self._all_seats,
                is_over=lambda: self._nodes == 1 or self._orders.is_over(self._number),
            )
            reason = attempt.run()
        self._writer.send_files(self._folder, lambda path: path.name != RESULT or reason.kind == "done")
        return reason

    def _plan(self) -> Plan:
        asked, count = self._start.spec, self._start.layout[self._start.node]
        python = asked.python or sys.executable
        devices = asked.devices or devices_for(asked.gpus, count, str(asked.framework), os.environ)
        spec = replace(
            asked,
            command=(python, str(_BOOTSTRAP)) if asked.is_call else asked.command,
            is_program=asked.is_call or asked.is_program,
            size=count,  # this node's; so are the seats below, and roles are of the whole job
            roles={},
            environment={**asked.environment, **asked.secrets},
            devices=devices,
        )
        plan = make_plan(spec, environment_without_ours(), Path.cwd())
        own = self._call_variables() if asked.is_call else {}
        return replace(plan, spec=replace(spec, roles=asked.roles), seats=self._seats(), own=own)

    def _seats(self) -> tuple[Seat, ...]:
        counts, node = self._start.layout, self._start.node
        first = sum(counts[:node])
        return tuple(
            replace(self._all_seats[first + local], place=Place(node, len(counts), local, counts[node]))
            for local in range(counts[node])
        )

    def _call_variables(self) -> dict[int, dict[str, str]]:
        call = self._scratch / "call.pickle"
        root, here = self._start.root, str(Path.cwd())
        path = [_moved(entry, root, here) for entry in self._start.path] if root else list(self._start.path)
        return {
            rank: {VARIABLE: describe(call, layout.rank_folder(self._folder, rank), [entry for entry in path if entry])}
            for rank in (seat.rank for seat in self._seats())
        }

    @contextmanager
    def _meet(self, plan: Plan) -> Iterator[Meeting]:
        start = self._start
        try:
            yield Meeting(
                ports=start.ports,
                run_id=start.run_id,
                host=start.hosts[0],
                hosts=start.hosts,
                roles=self._all_seats,
                loopback=self._reserved.interface,
                store_port=start.store_port,
                attempt=self._number,
                max_restarts=start.spec.max_restarts,
                environment=plan.environment,
            )
        finally:
            self._reserved.close()

    def _poll(self) -> None:
        """Once a tick: how the ranks fare."""
        now = time.monotonic()
        if now - self._beat < _BEAT:
            return
        self._beat = now
        if not self._has_sent_start:
            self._has_sent_start = True
            self._writer.send_files(self._folder, lambda path: path.name in (layout.PROCESS, layout.ENVIRONMENT))
        self._link_beat({rank: asdict(status) for rank, status in self._observer.status().items()})

    def _link_beat(self, ranks: Mapping[int, Any]) -> None:
        try:
            self._link.send("beat", ranks={str(rank): status for rank, status in ranks.items()})
        except OSError:
            self._orders.is_gone = True

    def _stalled(self, seen: Observation) -> None:
        """The stacks and traces that were taken, then the word that they are there."""
        self._writer.send_files(self._folder, lambda path: path.name not in (RESULT, EXCEPTION, layout.SAMPLES))
        own = self._start.hosts[self._seats()[0].rank]
        others = [host for host in self._start.hosts if host != own]
        self._link.send("stalled", quiet=seen.data.get("quiet_s"), reached=reached(others))


def _moved(entry: str, root: str, here: str) -> str:
    """Where a folder of the project is on this node; nothing for folders that stayed behind."""
    if entry == root or entry.startswith(root.rstrip("/") + "/"):
        return here + entry[len(root.rstrip("/")) :]
    return ""


def _interface_of(address: str) -> str:
    """The name of the interface that an address is on."""
    for name, entries in psutil.net_if_addrs().items():
        if any(entry.address == address for entry in entries):
            return name
    return loopback_interface()
