"""Ranks meet where the job would: rank 0 listens at MASTER_PORT (or just above it, where torchrun's agent has that one)."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress

from phalanx.preflight.agent import serve
from phalanx.preflight.channels import SocketChannel
from phalanx.preflight.meeting.seat import Seat
from phalanx.preflight.parties import Party

_PORTS_ABOVE = 4
_GREETING_S = 2.0
_PAUSE_S = 0.2
_MARK = "phalanx-check"
_SEGMENT = 512


def ports_of(seat: Seat) -> list[int]:
    """Where to listen or look, best first."""
    first = seat.store[1] if seat.store else 29500
    return [port for port in range(first + int(seat.store_is_up), first + _PORTS_ABOVE + 1) if port < 65536]


class Reception:
    """Rank 0 listens, and keeps whoever comes and is one of the check."""

    def __init__(self, seat: Seat) -> None:
        self.parties: dict[str, Party] = {}
        self.sizes: dict[str, int] = {}
        self._lock = threading.Lock()
        self._listener = _listen(ports_of(seat))
        self._listener.settimeout(0.2)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return  # closed
            threading.Thread(target=self._admit, args=(connection,), daemon=True).start()

    def _admit(self, connection: socket.socket) -> None:
        if (found := _greet(connection)) is not None:
            name, size, party = found
            with self._lock:
                self.parties[name], self.sizes[name] = party, size

    def close(self) -> None:
        """Nobody more: the probes look whether the port is free."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _listen(ports: list[int]) -> socket.socket:
    last: OSError | None = None
    for port in ports:
        try:
            return _small(socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024))
        except OSError:
            with suppress(OSError):
                return _small(socket.create_server(("", port), backlog=1024))
            last = OSError(f"no free port among {ports[0]} to {ports[-1]}")
    raise last or OSError("no port to listen at")


def _small(sock: socket.socket) -> socket.socket:
    """Small segments in both directions: that large packets vanish on the way is to be found, not to hinder the meeting."""
    with suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT)
    return sock


def _connect(address: str, port: int) -> socket.socket:
    """As socket.create_connection, with small segments."""
    last: OSError | None = None
    for family, kind, protocol, _, target in socket.getaddrinfo(address, port, type=socket.SOCK_STREAM):
        sock = _small(socket.socket(family, kind, protocol))
        try:
            sock.settimeout(_GREETING_S)
            sock.connect(target)
            return sock
        except OSError as error:
            sock.close()
            last = error
    raise last or OSError(f"{address} has no address")


def _greet(connection: socket.socket) -> tuple[str, int, Party] | None:
    """Who came: its name, the size it was told, and itself; None if it is a stranger."""
    connection.settimeout(_GREETING_S)
    try:
        hello = json.loads(_line(connection))
        if hello.get(_MARK) != 1:
            raise ValueError("a stranger")
        connection.sendall(json.dumps({_MARK: "welcome"}).encode() + b"\n")
        party = Party("", str(hello["host"]), (int(hello["rank"]),), SocketChannel(connection))
        return str(hello["name"]), int(hello["size"]), party
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        connection.close()
        return None


def _line(connection: socket.socket) -> bytes:
    """One short line, read byte by byte so that nothing behind it is lost."""
    found = b""
    while not found.endswith(b"\n") and len(found) < 4096:
        piece = connection.recv(1)
        if not piece:
            raise OSError("closed before a greeting")
        found += piece
    return found


class Visitor:
    """Another rank: it looks for rank 0 where the job would, and answers it until it is dismissed."""

    def __init__(self, seat: Seat, name: str, patience: float) -> None:
        self._seat, self._name, self._patience = seat, name, patience
        self.dismissed = threading.Event()
        self.is_served = False  # rank 0 has welcomed us, and is alive
        self._over = threading.Event()
        self._connection: socket.socket | None = None
        threading.Thread(target=self._look, daemon=True).start()

    def close(self) -> None:
        """Look no further."""
        self._over.set()
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)

    def _look(self) -> None:
        assert self._seat.store is not None
        while not self._over.is_set() and not self.dismissed.is_set():
            for port in ports_of(self._seat):
                with suppress(OSError, UnicodeError), _connect(self._seat.store[0], port) as connection:
                    self._connection = connection
                    self._answer(connection)
                if self._over.is_set() or self.dismissed.is_set():
                    break
            self._over.wait(_PAUSE_S)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(_GREETING_S)
        seat = self._seat
        hello = {_MARK: 1, "rank": seat.rank, "size": seat.size, "host": socket.gethostname(), "name": self._name}
        try:
            connection.sendall(json.dumps(hello).encode() + b"\n")
            if json.loads(_line(connection)).get(_MARK) != "welcome":
                return
        except (ValueError, AttributeError):
            return  # another program
        self.is_served = True
        # Whoever leads says something every second: one that is silent for longer than we would wait for it is gone.
        connection.settimeout(max(self._patience, _GREETING_S))
        try:
            with connection.makefile("r", encoding="utf-8") as lines:
                serve.serve(self._requests(lines), lambda line: connection.sendall(line.encode()))
        finally:
            self.is_served = False

    def _requests(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            if '"bye"' in line:
                self.dismissed.set()
                return
            yield line
