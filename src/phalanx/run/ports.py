"""Ports that nobody else can get between the moment we choose them and the moment a rank listens on them.

We bind a port and keep it bound without listening. The kernel then gives it to nobody who asks for any free port, so two
jobs cannot be given the same one. A rank that asks for exactly this port gets it, because both it and we allow the address
to be shared (SO_REUSEADDR is set by the stores of PyTorch, SO_REUSEPORT also by gRPC in TensorFlow and JAX), which the
kernel admits as long as only one of us listens.
"""

from __future__ import annotations

import socket
from types import TracebackType


class Ports:
    """Holds ports until it is closed."""

    def __init__(self, count: int, host: str = "127.0.0.1") -> None:
        self._held: list[socket.socket] = []
        try:
            for _ in range(count):
                self._held.append(_bound(host))
        except OSError:
            self.close()
            raise

    @property
    def numbers(self) -> tuple[int, ...]:
        """The ports, in the order in which they were got."""
        return tuple(int(held.getsockname()[1]) for held in self._held)

    def close(self) -> None:
        """Give them back."""
        for held in self._held:
            held.close()
        self._held.clear()

    def __enter__(self) -> Ports:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _bound(host: str) -> socket.socket:
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        held.bind((host, 0))
        # Only now: a socket that shares from the start could be given a port that another one shares.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        held.close()
        raise
    return held


def listening(host: str = "127.0.0.1") -> socket.socket:
    """A socket that listens already, to be handed to a child that serves on it."""
    return socket.create_server((host, 0), backlog=256)


def loopback_interface() -> str:
    """The name of the interface that 127.0.0.1 is on: `lo`, on other systems `lo0`."""
    names = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    return min(names, key=len, default="lo")
