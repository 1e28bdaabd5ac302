"""Ranks meet where the job would: rank 0 listens at MASTER_PORT (or just above it, where torchrun's agent has that one)."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from phalanx.check.agent import serve
from phalanx.check.channels import SocketChannel
from phalanx.check.meeting.seat import Seat
from phalanx.check.parties import Party, this_machine

_PORTS_ABOVE = 4
_GREETING_S = 2.0
_PAUSE_S = 0.2
_MARK = "phalanx-check"
_SEGMENT = 512


def ports_of(seat: Seat) -> list[int]:
    """Where to listen or look, best first."""
    first = seat.store[1] if seat.store else 29500
    return [port for port in range(first + int(seat.store_is_up), first + _PORTS_ABOVE + 1) if port < 65536]


@contextmanager
def leading(seat: Seat, patience: float, say: Callable[[str], None]) -> Iterator[list[Party]]:
    """The parties that came to rank 0. Raises OSError if no port is free."""
    listener = _listen(ports_of(seat))
    listener.settimeout(0.2)
    began = time.monotonic()
    found: list[Party] = []
    lock = threading.Lock()

    def admit(connection: socket.socket) -> None:
        party = _greet(connection)
        if party is not None:
            with lock:
                found.append(party)

    try:
        while time.monotonic() - began < patience:
            with lock:
                say(f"{len(found) + 1} of {seat.size} ranks are here")
                if len(found) >= seat.size - 1:
                    break
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                threading.Thread(target=admit, args=(connection,), daemon=True).start()
        listener.close()  # the probes look whether the port is free
        me = this_machine(socket.gethostname())
        yield [me.renamed("", me.host, (seat.rank,)), *sorted(found, key=lambda party: party.ranks)]
    finally:
        listener.close()
        for party in found:
            party.close()


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


def _greet(connection: socket.socket) -> Party | None:
    """Who came; None if it is a stranger."""
    connection.settimeout(_GREETING_S)
    try:
        hello = json.loads(_line(connection))
        if hello.get(_MARK) != 1:
            raise ValueError("a stranger")
        connection.sendall(json.dumps({_MARK: "welcome"}).encode() + b"\n")
        return Party("", str(hello["host"]), (int(hello["rank"]),), SocketChannel(connection))
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


def attend(seat: Seat, patience: float) -> str | None:
    """Find rank 0 and answer it until it is done; what went wrong, if it was not found."""
    assert seat.store is not None
    until = time.monotonic() + patience
    wrong = "nothing was tried"
    while time.monotonic() < until:
        for port in ports_of(seat):
            try:
                connection = _connect(seat.store[0], port)
            except OSError as error:
                wrong = "timed out" if isinstance(error, TimeoutError) else error.strerror or str(error)
                continue
            if (problem := _attend(connection, seat, patience)) is None:
                return None
            wrong = problem
        time.sleep(_PAUSE_S)
    return wrong


def _attend(connection: socket.socket, seat: Seat, patience: float) -> str | None:
    with connection:
        try:
            connection.settimeout(_GREETING_S)
            hello = {_MARK: 1, "rank": seat.rank, "host": socket.gethostname()}
            connection.sendall(json.dumps(hello).encode() + b"\n")
            if json.loads(_line(connection)).get(_MARK) != "welcome":
                return "another program answers there"
        except (OSError, ValueError, AttributeError) as error:
            return f"another program listens there ({error})"
        # Whoever leads says something every second: one that is silent for longer than we would wait for it is gone.
        connection.settimeout(max(patience, _GREETING_S))
        try:
            with connection.makefile("r", encoding="utf-8") as lines:
                serve.serve(lines, lambda line: connection.sendall(line.encode()))
        except TimeoutError:
            return f"rank 0 said nothing more for {patience:g} s"
        except OSError:
            pass
    return None
