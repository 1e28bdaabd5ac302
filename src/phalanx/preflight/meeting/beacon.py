"""Ranks on one link find each other without any address: small multicast messages that stay on the link, only while ranks are missing."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

_GROUP, _PORT = "239.255.77.29", 29497
_GROUP6 = "ff02::4d1d"
_EVERY_S = 0.25
_LARGEST = 1400


class Beacon:
    """Says who is here, and hears who else is. Where the host allows no multicast it says and hears nothing."""

    def __init__(self, told: dict[str, Any], heard: Callable[[dict[str, Any], str], None]) -> None:
        self._data = json.dumps(told).encode()[:_LARGEST]
        self._heard = heard
        self._over = threading.Event()
        self._sockets = [one for one in (_open4(), _open6()) if one is not None]

    def start(self) -> None:
        """Say and hear, from now on."""
        for sock in self._sockets:
            threading.Thread(target=self._hear, args=(sock,), daemon=True).start()
        threading.Thread(target=self._say, daemon=True).start()

    def close(self) -> None:
        """No more."""
        self._over.set()
        for sock in self._sockets:
            sock.close()

    def _say(self) -> None:
        while True:
            for sock in self._sockets:
                for index in _indexes():
                    with suppress(OSError):
                        _send(sock, index, self._data)
            if self._over.wait(_EVERY_S):
                return

    def _hear(self, sock: socket.socket) -> None:
        while not self._over.is_set():
            try:
                data, source = sock.recvfrom(2 * _LARGEST)
            except OSError:
                return  # closed
            with suppress(ValueError, AttributeError):
                self._heard(json.loads(data), _written(source))


def _open4() -> socket.socket | None:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        sock.bind(("", _PORT))
    except OSError:
        sock.close()
        return None
    for index in _indexes():
        with suppress(OSError):
            member = struct.pack("=4s4si", socket.inet_aton(_GROUP), b"\0" * 4, index)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    return sock


def _open6() -> socket.socket | None:
    try:
        sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    except OSError:
        return None
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(("::", _PORT))
    except OSError:
        sock.close()
        return None
    for index in _indexes():
        with suppress(OSError):
            member = socket.inet_pton(socket.AF_INET6, _GROUP6) + struct.pack("=i", index)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
    return sock


def _indexes() -> Sequence[int]:
    return [index for index, name in socket.if_nameindex() if name != "lo"]


def _send(sock: socket.socket, index: int, data: bytes) -> None:
    if sock.family == socket.AF_INET:
        choice = struct.pack("=4s4si", b"\0" * 4, b"\0" * 4, index)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, choice)
        sock.sendto(data, (_GROUP, _PORT))
    else:
        sock.sendto(data, (_GROUP6, _PORT, 0, index))


def _written(source: tuple[Any, ...]) -> str:
    """The sender's address as one calls it back: link-local ones with their interface."""
    address = str(source[0])
    if address.startswith("fe80") and "%" not in address and len(source) > 3:
        return f"{address}%{socket.if_indextoname(source[3])}"
    return address
