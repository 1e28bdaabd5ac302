"""One connection between two ranks, in which either may lead: who leads asks over it, the other answers.

Lines of JSON: a greeting each way, `{"with": [names]}` whom the sender is joined with, `{"leads": 1}` from whoever is to lead, requests and
answers, `{"bye": 1}` at the end.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from phalanx.preflight.agent import serve
from phalanx.preflight.channels import Conversation

GREETING_S = 2.0
_MARK = "phalanx-check"
_SEGMENT = 512
_LONGEST_GREETING = 4096


@dataclass(frozen=True, slots=True, order=True)
class Guest:
    """A rank as it introduces itself; `name` is unique. The lowest leads where nothing else decides."""

    rank: int
    name: str
    host: str
    size: int

    def greeting(self) -> dict[str, Any]:
        """What it says of itself."""
        return {_MARK: 2, "rank": self.rank, "name": self.name, "host": self.host, "size": self.size}


def guest_of(told: Any) -> Guest:
    """From a greeting. Raises ValueError for anything else."""
    try:
        if told[_MARK] != 2:
            raise ValueError("a greeting of another kind")
        return Guest(int(told["rank"]), str(told["name"]), str(told["host"]), int(told["size"]))
    except (KeyError, TypeError) as error:
        raise ValueError("no greeting") from error


class Link:
    """The connection, once both have introduced themselves. Raises OSError or ValueError if the other side is no rank of a check."""

    def __init__(self, connection: socket.socket, me: Guest) -> None:
        self._socket = connection
        self._writing = threading.Lock()
        self.conversation = Conversation()
        self.joined: frozenset[str] = frozenset()  # whom the other one is joined with, by what it says
        self.is_preferred = True  # of two between the same ranks
        self.on_claim: Callable[[], None] = lambda: None  # the other one is to lead
        self.on_bye: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None
        connection.settimeout(GREETING_S)
        self.send(me.greeting())
        self.guest = guest_of(json.loads(_line(connection)))

    def start(self, patience: float) -> None:
        """Listen to the other one from now on; one that is silent for longer than the patience is gone."""
        # Whoever is joined says something every second, so silence means a dead connection.
        self._socket.settimeout(max(patience, GREETING_S))
        threading.Thread(target=self._hear, daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        """One line. Raises OSError."""
        with self._writing:
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _hear(self) -> None:
        known = serve.verbs()
        with suppress(OSError, ValueError), self._socket.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "leads" in message:
                    self.on_claim()
                elif "do" in message:
                    threading.Thread(target=serve.answer, args=(known, message, self._reply), daemon=True).start()
                elif "with" in message:
                    self.joined = frozenset(map(str, message["with"]))
                elif "bye" in message:
                    self.on_bye()
                else:
                    self.conversation.heard(line)
        self.conversation.broken("the connection is closed")
        self.on_end()

    def _reply(self, message: dict[str, Any]) -> None:
        with suppress(OSError):
            self.send(message)


class LinkChannel:
    """A target at the other end of a link, for the rank that leads."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def ask(self, verb: str, args: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
        """Over the link."""
        number, answers = self._link.conversation.open()
        try:
            self._link.send({"id": number, "do": verb, "args": args})
        except OSError as error:
            self._link.conversation.broken(f"the connection broke: {error.strerror or error}")
        return self._link.conversation.collect(number, answers, timeout)

    def close(self) -> None:
        """The rank at the other end may go."""
        with suppress(OSError):
            self._link.send({"bye": 1})


def small(sock: socket.socket) -> socket.socket:
    """Small segments in both directions: that large packets vanish on the way is to be found, not to hinder the meeting."""
    with suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT)
    return sock


def connect(address: str, port: int) -> socket.socket:
    """As socket.create_connection, with small segments. Raises OSError."""
    last: OSError | None = None
    for family, kind, protocol, _, target in socket.getaddrinfo(address, port, type=socket.SOCK_STREAM):
        sock = small(socket.socket(family, kind, protocol))
        try:
            sock.settimeout(GREETING_S)
            sock.connect(target)
            return sock
        except OSError as error:
            sock.close()
            last = error
    raise last or OSError(f"{address} has no address")


def _line(connection: socket.socket) -> bytes:
    """One short line, read byte by byte so that nothing behind it is lost."""
    found = b""
    while not found.endswith(b"\n") and len(found) < _LONGEST_GREETING:
        piece = connection.recv(1)
        if not piece:
            raise OSError("closed before a greeting")
        found += piece
    return found
