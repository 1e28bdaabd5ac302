"""Ports at which a process of the job says that it listens, and which task it is.

I0000 00:00:1794867072.572770   14226 grpc_server_lib.cc:467] Started server with target: grpc://localhost:40445
[I socket.cpp:566] [c10d] The server socket has started to listen on [::]:29500.
I0000 00:00:1794787156.968573    5307 coordination_service.h:529] /job:worker/replica:0/task:0 has connected to coordination service. Incarnation: 167
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.sources.window import Window

SOURCE = "server"
TRIGGERS = (
    "Started server with target: ",
    "server socket has started to listen on",
    " has connected to coordination service",
)

_PORT = re.compile(r"(?:with target: \w+://|started to listen on )\S*?:(?P<port>\d{2,5})\b")
_TASK = re.compile(r"/job:\w+/(?:replica:\d+/)?task:(?P<task>\d+) has connected to coordination service")


def read(window: Window) -> Iterator[Event]:
    """The port, and who listens there; the task that it is."""
    if (found := _PORT.search(window.text)) is not None:
        yield window.event(EventKind.PROGRESS, SOURCE, data={"port": int(found["port"])})
    elif (task := _TASK.search(window.text)) is not None:
        yield window.event(EventKind.PROGRESS, SOURCE, data={"task": int(task["task"])})
