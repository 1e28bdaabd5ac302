"""Joins ranks over the network by every way that one of them finds: where the job would meet, and to neighbours that a beacon tells of.

A link serves both directions, so that a pair meets as soon as either of them can call the other. Whoever is joined with most leads.
"""

from __future__ import annotations

import getpass
import hashlib
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from phalanx.preflight.meeting.beacon import Beacon
from phalanx.preflight.meeting.links import Guest, Link, LinkChannel, connect, guest_of, small
from phalanx.preflight.meeting.seat import Seat
from phalanx.preflight.targets import Target

_PORTS_ABOVE = 4
_PAUSE_S = 0.3
_BEAT_S = 0.5
_CLAIM_S = 0.3
_MOST_CALLED = 64  # neighbours; a large job has ranks enough that find each other


class Mesh:
    """This rank's links, which come and go by themselves until it is closed."""

    def __init__(self, seat: Seat, me: Guest, patience: float, link: bool) -> None:
        self._seat, self._me, self._patience = seat, me, patience
        self.dismissed = threading.Event()  # whoever led said good-bye
        self._leader: Link | None = None
        self._claims = False
        self.links: dict[str, Link] = {}
        self.heard: dict[str, Guest] = {}  # by the beacon
        self._store_of: dict[str, str] = {}  # where each of them is to meet
        self._calling: set[str] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()  # nobody more is looked for
        self._closed = threading.Event()
        self.also: frozenset[str] = frozenset()  # whom this rank has found in another way
        self._listeners = [one for one in (_listen([0]), self._listen_at_store()) if one is not None]
        own = self._listeners[0].getsockname()[1] if self._listeners else 0
        told = {**me.greeting(), "job": _job(seat), "port": own, "store": _store(seat)}
        self._beacon = Beacon(told, self._hear_of) if link else None
        for listener in self._listeners:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        if seat.store is not None:
            for port in ports_of(seat):
                threading.Thread(target=self._keep_calling, args=(seat.store[0], port), daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()
        if self._beacon is not None:
            self._beacon.start()

    def stop_looking(self) -> None:
        """Nobody more: the probes look whether the store's port is free. The links stay."""
        self._over.set()
        if self._beacon is not None:
            self._beacon.close()
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def close(self) -> None:
        """End all links."""
        self.stop_looking()
        self._closed.set()
        with self._lock:
            links = list(self.links.values())
        for link in links:
            link.close()

    def guests(self) -> dict[str, Guest]:
        """Those that this rank is joined with, by name."""
        with self._lock:
            return {name: link.guest for name, link in self.links.items()}

    def leads(self) -> bool:
        """Whether this rank is joined with more than any that it is joined with; among equals the lowest leads."""
        with self._lock:
            others = [(len(link.joined), link.guest) for link in self.links.values()]
            mine = len({*self.links, *self.also})
        return all(count < mine or (count == mine and self._me < guest) for count, guest in others)

    def known(self) -> set[str]:
        """All that are here as far as anybody tells, joined with this rank or not."""
        with self._lock:
            told = [link.joined for link in self.links.values()]
            return {self._me.name, *self.links, *self.heard, *self.also}.union(*told)

    def targets(self, skip: set[str]) -> list[Target]:
        """The ranks that are joined, as targets of a check."""
        with self._lock:
            chosen = [link for name, link in self.links.items() if name not in skip]

        def ranks(guest: Guest) -> tuple[int, ...]:
            return () if self._seat.is_node else (guest.rank,)  # a node's number is no rank

        return [Target("", one.guest.host, ranks(one.guest), LinkChannel(one)) for one in chosen]

    def _listen_at_store(self) -> socket.socket | None:
        """Rank 0 listens where the job would meet, and so does whoever has that address: it may not be rank 0."""
        if self._seat.store is None or not (self._seat.rank == 0 or _is_own(self._seat.store[0])):
            return None
        return _listen(ports_of(self._seat))

    def _accept(self, listener: socket.socket) -> None:
        while not self._over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._join, args=(connection, False), daemon=True).start()

    def _join(self, connection: socket.socket, called: bool) -> str:
        """Introduce each other, and who it was; a stranger, ourselves and who is joined already are let go."""
        try:
            link = Link(connection, self._me)
        except (OSError, ValueError):
            connection.close()
            return ""
        name = link.guest.name
        # Where both call at the same time, both keep the call of the lower one.
        link.is_preferred = called == (self._me < link.guest)
        with self._lock:
            old = self.links.get(name)
            is_known = old is not None and (old.is_preferred or not link.is_preferred)
            if name == self._me.name or is_known or self._over.is_set():
                link.close()
                return name
            self.links[name] = link
        if old is not None:
            old.close()
        link.on_claim, link.on_bye = lambda: self._be_led(link), self.dismissed.set
        link.on_end = lambda: self._lose(name, link)
        link.start(self._patience)
        self._tell(link)
        return name

    def _tell(self, link: Link) -> None:
        with suppress(OSError):
            link.send({"with": sorted({*self.guests(), *self.also})})

    def claim(self) -> bool:
        """Tell all that this rank leads. False if a lower one says so at the same time."""
        self._claims = True
        with self._lock:
            links = list(self.links.values())
        for link in links:
            with suppress(OSError):
                link.send({"leads": 1})
        self._over.wait(_CLAIM_S)
        self._claims = self._claims and self._leader is None
        if self._claims:
            self.stop_looking()
        return self._claims

    @property
    def is_led(self) -> bool:
        """Whether another one leads, and is alive."""
        return self._leader is not None

    def _be_led(self, leader: Link) -> None:
        if self._claims and self._me < leader.guest:
            return  # it hears of our claim, and yields
        self._claims, self._leader = False, leader
        self.stop_looking()

    def _lose(self, name: str, link: Link) -> None:
        with self._lock:
            if self.links.get(name) is link:
                del self.links[name]
        if self._leader is link:
            self._leader = None

    def _keep_calling(self, address: str, port: int) -> None:
        name = ""
        while not self._over.is_set() and name != self._me.name:
            if not name or name not in self.links:
                with suppress(OSError, UnicodeError):
                    name = self._join(connect(address, port), True) or name
            self._over.wait(_PAUSE_S)

    def _hear_of(self, told: Mapping[str, Any], address: str) -> None:
        """A beacon of another rank of this job: call it."""
        guest = guest_of(told)
        if told.get("job") != _job(self._seat) or guest.name == self._me.name or self._over.is_set():
            return
        place = str(told.get("store") or "")
        with self._lock:
            if self._is_of_another_job(guest, place):
                return
            self.heard[guest.name], self._store_of[guest.name] = guest, place
            key = f"{guest.name} {address}"
            if key in self._calling or guest.name in self.links or len(self._calling) >= _MOST_CALLED:
                return
            self._calling.add(key)
        threading.Thread(target=self._keep_calling, args=(address, int(told["port"])), daemon=True).start()

    def _is_of_another_job(self, guest: Guest, place: str) -> bool:
        """Where no scheduler names jobs: one that is to meet elsewhere, in a place that somebody has who is to meet where we are."""
        mine = _store(self._seat)
        if place == mine:
            return False
        agreeing = {self._me.rank} | {
            one.rank for name, one in self.heard.items() if self._store_of.get(name) == mine and name != guest.name
        }
        return guest.rank in agreeing and not self._seat.is_node

    def _beat(self) -> None:
        """A sign of life for the others, and whom we are joined with."""
        while not self._closed.wait(_BEAT_S):
            with self._lock:
                links = list(self.links.values())
            for link in links:
                self._tell(link)


def ports_of(seat: Seat) -> list[int]:
    """Where to listen or look, best first; torchrun's agent may have the first."""
    first = seat.store[1] if seat.store else 29500
    return [port for port in range(first + int(seat.store_is_up), first + _PORTS_ABOVE + 1) if port < 65536]


def _listen(ports: list[int]) -> socket.socket | None:
    """At the first that is free; None if none is: the facts say who has it."""
    for port in ports:
        with suppress(OSError):
            return small(socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024))
        with suppress(OSError):
            return small(socket.create_server(("", port), backlog=1024))
    return None


def _is_own(address: str) -> bool:
    """Whether an address is this host's."""
    with suppress(OSError, UnicodeError):
        for family, kind, protocol, _, target in socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM):
            with suppress(OSError), socket.socket(family, kind, protocol) as sock:
                sock.bind(target)
                return True
    return False


def _store(seat: Seat) -> str:
    return f"{seat.store[0]}:{seat.store[1]}" if seat.store is not None else ""


def _job(seat: Seat) -> str:
    """The job's id on the link, where other people's jobs may be too."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    return hashlib.sha256(f"{seat.job} {user}".encode()).hexdigest()[:12]
