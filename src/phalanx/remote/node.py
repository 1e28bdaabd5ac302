"""One attempt of the job on this node: its ranks under the supervisor of `phalanx run`, its evidence sent to the driver."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
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
from phalanx.remote.worker import EXCEPTION, RESULT, VARIABLE, describe
from phalanx.run.children import Children, end_helper
from phalanx.run.ending import Reason
from phalanx.run.meeting import start_store
from phalanx.run.observer import Observation, Setup, make_observer
from phalanx.run.plan import JobSpec, OnStall, Plan, make_plan
from phalanx.run.ports import Ports, loopback_interface
from phalanx.run.signals import Signals
from phalanx.run.supervisor import Attempt

_BEAT = 1.0
_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")


class Room:
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
    """`told` is the driver's message: the job, and what is known of all nodes."""

    def __init__(
        self, told: Mapping[str, Any], room: Room, scratch: Path, link: Link, children: Children, orders: Orders
    ) -> None:
        self._told = told
        self._room = room
        self._scratch = scratch
        self._link = link
        self._children = children
        self._orders = orders
        self._number = int(told["attempt"])
        self._folder = layout.attempt_folder(scratch, self._number)
        self._nodes = len(told["layout"])
        self._all_seats = seats_of(int(told["size"]), told["roles"])
        secrets: Mapping[str, str] = told["secrets"]
        self._writer = ShippingWriter(
            scratch, link, secrets.values(), is_alone=self._nodes == 1, root=str(told["root"])
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
            size=int(self._told["size"]),
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
        told = self._told
        command: Sequence[str] = told["command"]
        is_call = told["is_call"]
        python = told.get("python") or sys.executable
        secrets: Mapping[str, str] = told["secrets"]
        spec = JobSpec(
            command=(python, str(_BOOTSTRAP)) if is_call else tuple(command),
            size=int(told["layout"][told["node"]]),
            is_module=bool(told["is_module"]),
            is_program=is_call or bool(told["is_program"]),
            framework=told["framework"],
            environment={**told["environment"], **secrets},
            devices=told.get("devices") or self._devices(),
            max_restarts=int(told["max_restarts"]),
            on_stall=OnStall(told["on_stall"]),
            inside=bool(told["inside"]),
            grace=float(told["grace"]),
            stall_after=float(told["stall_after"]),
            stall_at_most=float(told["stall_at_most"]),
            python=python,
            virtual_devices=int(told["virtual_devices"]),
        )
        plan = make_plan(spec, environment_without_ours(), Path.cwd())
        own = self._call_variables() if is_call else {}
        return replace(plan, spec=replace(spec, roles=told["roles"]), seats=self._seats(), own=own)

    def _devices(self) -> str | None:
        told = self._told
        return devices_for(told.get("gpus"), int(told["layout"][told["node"]]), str(told["framework"]), os.environ)

    def _seats(self) -> tuple[Seat, ...]:
        counts: list[int] = list(self._told["layout"])
        node = int(self._told["node"])
        first = sum(counts[:node])
        return tuple(
            replace(self._all_seats[first + local], place=Place(node, len(counts), local, counts[node]))
            for local in range(counts[node])
        )

    def _call_variables(self) -> dict[int, dict[str, str]]:
        call = self._scratch / "call.pickle"
        root, here = str(self._told["root"]), str(Path.cwd())
        path = [_moved(entry, root, here) for entry in self._told["path"]] if root else list(self._told["path"])
        return {
            rank: {VARIABLE: describe(call, layout.rank_folder(self._folder, rank), [entry for entry in path if entry])}
            for rank in (seat.rank for seat in self._seats())
        }

    @contextmanager
    def _meet(self, plan: Plan) -> Iterator[Meeting]:
        told = self._told
        try:
            yield Meeting(
                ports=tuple(told["ports"]),
                run_id=str(told["run_id"]),
                host=told["hosts"][0],
                hosts=tuple(told["hosts"]),
                roles=self._all_seats,
                loopback=self._room.interface,
                store_port=told.get("store_port"),
                attempt=self._number,
                max_restarts=int(told["max_restarts"]),
                environment=plan.environment,
            )
        finally:
            self._room.close()

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
        own = self._told["hosts"][self._seats()[0].rank]
        others = [host for host in self._told["hosts"] if host != own]
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
