"""The driver's end of every line: one thread a node, and, where agents connect by themselves, a port that listens for them."""

from __future__ import annotations

import contextlib
import errno
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from phalanx.backends.backend import Streams
from phalanx.remote.bundle_receiver import BundleReceiver
from phalanx.remote.link import Link, LinkError, Message
from phalanx.remote.packing import PackingError

_MOST_STRANGERS = 64  # connections that have not proved themselves, at a time; an agent does so within milliseconds
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED})  # it passes
_GREETING = 15.0  # seconds for the proof
_PATIENCE = 60.0  # seconds in which an agent must take what it is sent


@dataclass(slots=True, eq=False)
class Line:
    """One agent. `node` is None until the driver has given it its place."""

    link: Link
    node: int | None = None
    ranks: tuple[int, ...] = ()
    host: str = ""
    address: str = ""
    heard: float = field(default_factory=time.monotonic)
    is_open: bool = True
    status: dict[int, dict[str, Any]] = field(default_factory=dict)  # of its ranks, as the last beat told
    why: str = ""  # it was closed, where we closed it


Events = queue.SimpleQueue[tuple[Line, Message | None]]
Hears = Callable[[int, bytes, bool], None]


class Lines:
    """Reads all lines. Output and files are written down by the reading threads; the rest becomes events for the driver."""

    def __init__(self, token: str, receiver: BundleReceiver, hears: Hears) -> None:
        self.events: Events = queue.SimpleQueue()
        self._token = token
        self._receiver = receiver
        self._hears = hears
        self._listening: socket.socket | None = None
        self._strangers: deque[Link] = deque()  # the oldest first
        self._greeting = threading.Lock()
        self._all: list[Line] = []
        self.refused: list[str] = []

    def add(self, streams: Streams, node: int) -> None:
        """A line that is private to us and one agent: what an engine carries."""
        link = Link.over_pipes(
            streams.from_agent.fileno(),
            streams.to_agent.fileno(),
            hang_up=streams.to_agent.close,
            close=streams.from_agent.close,
            patience=_PATIENCE,
        )
        line = Line(link, node)
        self._all.append(line)
        threading.Thread(target=self._read, args=(line,), name=f"phalanx-node{node}", daemon=True).start()

    def listen(self, host: str, port: int = 0) -> int:
        """Listen for agents, at any port unless one is given; returns the port. Raises OSError."""
        self._listening = socket.create_server((host, port), backlog=256)
        threading.Thread(target=self._accept, args=(self._listening,), name="phalanx-listener", daemon=True).start()
        return int(self._listening.getsockname()[1])

    def close(self) -> None:
        """Take no more agents, and part from those that are still there."""
        if self._listening is not None:
            with contextlib.suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            self._listening = None
        for line in self._all:
            line.link.hang_up()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connected, peer = listening.accept()
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    return
                time.sleep(0.05)
                self._make_room()
                continue
            try:
                line = Line(Link.over_socket(connected, _PATIENCE))
            except OSError:  # it was gone before it could be greeted
                connected.close()
                continue
            with self._greeting:
                self._strangers.append(line.link)
            self._make_room()
            threading.Thread(target=self._greet, args=(line, peer[0]), name="phalanx-greeting", daemon=True).start()

    def _make_room(self) -> None:
        """Part from the connections that have taken longest to prove themselves: nobody can keep the agents out."""
        with self._greeting:
            gone = [self._strangers.popleft() for _ in range(len(self._strangers) - _MOST_STRANGERS)]
        for link in gone:
            link.hang_up()

    def _greet(self, line: Line, peer: str) -> None:
        # For the whole of it: a stranger that says a byte now and then would keep its place.
        limit = threading.Timer(_GREETING, line.link.hang_up)
        limit.daemon = True
        limit.start()
        try:
            self._prove(line, peer)
        finally:
            limit.cancel()
            with self._greeting, contextlib.suppress(ValueError):
                self._strangers.remove(line.link)
        if line.is_open:
            self._all.append(line)
            self._listen_to(line)

    def _read(self, line: Line) -> None:
        self._prove(line, f"node {line.node}", marked=True)
        if line.is_open:
            self._listen_to(line)
        else:
            self.events.put((line, None))

    def _prove(self, line: Line, who: str, marked: bool = False) -> None:
        try:
            if marked:
                line.link.await_mark()
            line.link.prove(self._token, is_driver=True)
        except (LinkError, OSError, ValueError, TypeError) as error:
            line.is_open, line.why = False, str(error)
            self.refused = [*self.refused[-_MOST_STRANGERS:], f"{who}: {error}"]
            line.link.close()

    def _listen_to(self, line: Line) -> None:
        try:
            while (message := line.link.receive()) is not None:
                line.heard = time.monotonic()
                self._take(line, message)
        except (LinkError, PackingError, OSError, ValueError, TypeError, KeyError) as error:
            line.why = str(error) or type(error).__name__
        line.is_open = False
        line.link.close()
        self.events.put((line, None))

    def _take(self, line: Line, message: Message) -> None:
        match message.kind:
            case "output":
                rank = int(message.data["rank"])
                if rank not in line.ranks:
                    raise LinkError(f"output of rank {rank}, which is not on this node")
                self._receiver.output(line.ranks, rank, message.payload)
                self._hears(rank, message.payload, bool(message.data.get("error")))
            case "file":
                self._receiver.file(line.ranks, message)
            case "observation":
                self._receiver.observation(line.ranks, line.host, message)
                self.events.put((line, message))
            case "beat":
                ranks = message.data.get("ranks") or {}
                line.status = {int(rank): status for rank, status in ranks.items()}
            case _:
                self.events.put((line, message))
