"""Ports at which a process of the job says that it listens.

I0000 00:00:1794867072.572770   14226 grpc_server_lib.cc:467] Started server with target: grpc://localhost:40445
[I socket.cpp:566] [c10d] The server socket has started to listen on [::]:29500.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.sources.window import Window

SOURCE = "server"
TRIGGERS = ("Started server with target: ", "server socket has started to listen on")

_PORT = re.compile(r"(?:with target: \w+://|started to listen on )\S*?:(?P<port>\d{2,5})\b")


def read(window: Window) -> Iterator[Event]:
    """The port, and who listens there."""
    if (found := _PORT.search(window.text)) is not None:
        yield window.event(EventKind.PROGRESS, SOURCE, data={"port": int(found["port"])})
