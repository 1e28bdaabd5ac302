"""Brings the ranks of a launcher together by every way at once, so that the meeting does not depend on what the check tests.

Each rank shows itself in a folder that they may share. Where that does not bring all of them together, they also look for each other where the job
would meet, and on the link. Whoever is joined with most leads, as soon as all are here or nobody more comes.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from phalanx.preflight.meeting.folder import FolderChannel, Here, Presence
from phalanx.preflight.meeting.links import Guest
from phalanx.preflight.meeting.mesh import Mesh
from phalanx.preflight.meeting.seat import Seat
from phalanx.preflight.targets import Target, this_machine

_POLL_S = 0.03
_FOLDER_ALONE_S = 0.5  # before the network is tried too
_QUIET_S = 4.0  # without a newcomer, when some are here
_LONELY_S = 8.0  # when nobody else is
_JOINING_S = 2.2  # when all are known of, for those who are not joined yet: as long as a call may take
_STUCK_S = 2.0  # after which the lowest leads, whatever the others say of themselves
_MOST_LOAD = 4.0
_SLACK = 3.0  # times the spread of the arrivals, and the time that this process took to start


@dataclass(slots=True)
class Gathering:
    """What came of it for this rank: it leads these targets, or another rank does."""

    leads: bool
    targets: list[Target] = field(default_factory=list)
    waited: float = 0.0
    size: int = 0  # by what most were told
    heard: list[Guest] = field(default_factory=list)  # that run, and with whom no connection came about


class Gatherer:
    """One rank that looks for the others."""

    def __init__(self, seat: Seat, folder: Path | None, by_network: bool, wait: float, link: bool) -> None:
        self._seat, self._wait, self._link = seat, wait, link
        host = socket.gethostname()
        self._me = Guest(seat.rank, f"{host}-{os.getpid()}-{uuid.uuid4().hex[:6]}", host, seat.size)
        self._by_network = by_network
        self._presence = Presence(folder, seat, self._me.name) if folder is not None else None
        self._mesh: Mesh | None = None
        self._asked: list[str] = []

    def gather(self, say: Callable[[str], None]) -> Gathering:
        """Wait until all are here, nobody more comes, or another rank has led the check."""
        began = arrived = time.monotonic()
        known: set[str] = set()
        while True:
            now = time.monotonic()
            if self._is_dismissed():
                return Gathering(leads=False)
            here = self._presence.others() if self._presence is not None else []
            guests = self._mesh.guests() if self._mesh is not None else {}
            names = {self._me.name, *(one.name for one in here), *guests}
            if names - known:
                known |= names
                arrived = now
            sizes = [self._seat.size, *(one.size for one in here), *(one.size for one in guests.values())]
            say(f"{len(names)} of {max(sizes)} ranks are here")
            until = self._until(began, arrived, len(names), max(sizes))
            if self._is_led():
                pass  # answered by threads of their own
            elif len(names) >= max(sizes) or now > until:
                if (led := self._lead(here, now - began, sizes, now > until + _STUCK_S)) is not None:
                    return led
            elif now - began > _FOLDER_ALONE_S and self._by_network and self._mesh is None:
                self._mesh = Mesh(self._seat, self._me, self._wait, self._link)
            if self._mesh is not None:
                self._mesh.also = frozenset(one.name for one in here if one.name != self._me.name)
            time.sleep(_POLL_S)

    def latecomers(self) -> list[Target]:
        """Who came to the folder after the lead was taken: more ranks than the job is said to have."""
        if self._presence is None:
            return []
        known = {self._me.name, *self._asked, *(self._mesh.guests() if self._mesh is not None else ())}
        late = [one for one in self._presence.others() if one.name not in known]
        self._asked += [one.name for one in late]
        return self._in_folder(late)

    def _in_folder(self, here: list[Here]) -> list[Target]:
        folder = self._presence.folder if self._presence is not None else Path()
        return [Target("", one.host, self._ranks(one.rank), FolderChannel(folder, one.name)) for one in here]

    def close(self) -> None:
        """Let everybody go, and put everything away."""
        if self._mesh is not None:
            self._mesh.close()
        if self._presence is not None:
            self._presence.leave(self._asked)

    def _until(self, began: float, arrived: float, count: int, size: int) -> float:
        """When to go on without the missing: patience grows with how slowly ranks come."""
        last = began + self._wait
        if self._mesh is not None and len(self._mesh.known()) >= size:
            return min(last, arrived + _JOINING_S)
        if count == 1:
            return min(last, began + max(_LONELY_S * _load(), _SLACK * _age()))
        spread = arrived - began
        return min(last, arrived + max(_QUIET_S * _load(), _SLACK * spread, _SLACK * _age()))

    def _is_dismissed(self) -> bool:
        return any(one is not None and one.dismissed.is_set() for one in (self._presence, self._mesh))

    def _is_led(self) -> bool:
        """Whether another rank leads; its probes want the store's port free."""
        if self._presence is not None and self._presence.has_leader():
            if self._mesh is not None:
                self._mesh.stop_looking()
            return True
        return self._mesh is not None and self._mesh.is_led

    def _ranks(self, number: int) -> tuple[int, ...]:
        """A node's number is no rank."""
        return () if self._seat.is_node else (number,)

    def _is_mine(self, here: list[Here], is_stuck: bool) -> bool:
        """Whether this rank is the one to lead."""
        joined = self._mesh.guests() if self._mesh is not None else {}
        mates = [one for one in here if one.name != self._me.name and (is_stuck or one.name not in joined)]
        if any((one.rank, one.name) < (self._me.rank, self._me.name) for one in mates):
            return False
        if is_stuck:
            return all(self._me < guest for guest in joined.values())
        return self._mesh is None or self._mesh.leads()

    def _lead(self, here: list[Here], waited: float, sizes: list[int], is_stuck: bool) -> Gathering | None:
        """Lead those who are here; None if another one is to do it."""
        if not self._is_mine(here, is_stuck) or (self._mesh is not None and not self._mesh.claim()):
            return None
        if self._presence is not None and not self._presence.claim():
            return None
        me = this_machine(socket.gethostname())
        targets = [me.renamed("", me.host, self._ranks(self._seat.rank))]
        others = [one for one in here if one.name != self._me.name]
        if self._presence is not None:
            self._asked = [one.name for one in others]
            targets += self._in_folder(others)
        absent: list[Guest] = []
        if self._mesh is not None:
            targets += self._mesh.targets({one.name for one in here})
            joined = self._mesh.guests()
            absent = [one for name, one in self._mesh.heard.items() if name not in joined]
        targets[1:] = sorted(targets[1:], key=lambda target: target.ranks)
        size = max(set(sizes), key=lambda size: (sizes.count(size), size))
        return Gathering(True, targets, waited, size, absent)


def _load() -> float:
    """How many times longer things take here than on an idle machine, as far as the kernel tells: other ranks start as slowly."""
    return min(max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)), _MOST_LOAD)


def _age() -> float:
    """Seconds since this process was started: on a busy host or a slow file system ranks take long to come."""
    try:
        ticks = float(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        began = ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, up - began - (time.monotonic() - _LOADED))


_LOADED = time.monotonic()
