"""The listening side of the network probes: says who it is to whoever connects, and plays ball with the check's own messages.

→ PHALANX/1 hello TOKEN LABEL            ← PHALANX/1 {"token": …, "label": …, "saw": ["10.0.0.2", 40112]}
→ up 65536 and as many bytes             ← got 65536
→ down 65536                             ← as many bytes
→ ping                                   ← pong
→ info                                   ← {the kernel's figures of this end}
"""

from __future__ import annotations

import errno
import json
import selectors
import socket
import threading
import time

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = "PHALANX/1 "
LONGEST_LINE = 4096
LONGEST_MESSAGE = 64 << 20
_PIECE = bytes(1 << 18)
_MOST_CONNECTIONS = 8192


class Caller:
    """A connection that was accepted, and how far its conversation is."""

    def __init__(self, sock: socket.socket, now: float) -> None:
        self.sock = sock
        self.heard = b""
        self.to_swallow = 0
        self.swallowed = 0
        self.to_say = b""
        self.to_pour = 0
        self.last = now


class Listener:
    """Some listening sockets and a thread that serves them until `close`."""

    def __init__(self, token: str, label: str, life: float) -> None:
        self.token, self.label = token, label
        self.ends = time.monotonic() + life
        self.selector = selectors.DefaultSelector()
        self.sockets: list[socket.socket] = []
        self.lock = threading.Lock()
        self.closed = False
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def open(self, port: int, family: int) -> dict[str, Any]:
        """Listen on one port of every address; 0 lets the kernel choose as it does for libraries."""
        name = "ipv6" if family == socket.AF_INET6 else "ipv4"
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            return {"port": port, "family": name, "errno": error.errno}
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind(("", port))
            sock.listen(1024)
            sock.setblocking(False)
        except OSError as error:
            sock.close()
            return {"port": port, "family": name, "errno": error.errno}
        with self.lock:
            self.sockets.append(sock)
            self.selector.register(sock, selectors.EVENT_READ, None)
        return {"port": sock.getsockname()[1], "family": name}

    def start(self) -> None:
        """Serve from now on."""
        self.thread.start()

    def ports(self) -> list[int]:
        """Where it listens."""
        with self.lock:
            return [sock.getsockname()[1] for sock in self.sockets]

    def close(self) -> None:
        """Stop; every socket that was opened is closed by the serving thread."""
        self.closed = True

    def _serve(self) -> None:
        try:
            while not self.closed and time.monotonic() < self.ends:
                for key, events in self.selector.select(0.2):
                    if key.data is None:
                        self._accept(key.fileobj)  # type: ignore[arg-type]
                    else:
                        self._step(key.data, events)
                self._forget_silent()
        finally:
            with self.lock:
                for key in list(self.selector.get_map().values()):
                    key.fileobj.close()  # type: ignore[union-attr]
                self.sockets = []
                self.selector.close()

    def _forget_silent(self) -> None:
        now = time.monotonic()
        if now < getattr(self, "_looked", 0.0) + 5.0:
            return
        self._looked = now
        for key in list(self.selector.get_map().values()):
            if key.data is not None and now - key.data.last > 60.0:
                self._drop(key.data)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(64):
            try:
                sock, _ = listening.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    time.sleep(0.02)  # the request waits in the queue until a connection has gone
                return
            if len(self.selector.get_map()) > _MOST_CONNECTIONS:
                sock.close()
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(sock, selectors.EVENT_READ, Caller(sock, time.monotonic()))

    def _step(self, caller: Caller, events: int) -> None:
        caller.last = time.monotonic()
        try:
            if events & selectors.EVENT_READ:
                data = caller.sock.recv(1 << 18)
                if not data:
                    self._drop(caller)
                    return
                self._hear(caller, data)
            self._say(caller)
        except BlockingIOError:
            pass
        except (OSError, ValueError):
            self._drop(caller)

    def _hear(self, caller: Caller, data: bytes) -> None:
        caller.heard += data
        while caller.heard:
            if caller.to_swallow:
                taken = min(len(caller.heard), caller.to_swallow)
                caller.heard = caller.heard[taken:]
                caller.to_swallow -= taken
                if not caller.to_swallow:
                    caller.to_say += b"got %d\n" % caller.swallowed
                continue
            line, newline, rest = caller.heard.partition(b"\n")
            if not newline:
                if len(line) > LONGEST_LINE:
                    raise ValueError("no line of ours")
                return
            caller.heard = rest
            self._obey(caller, line.decode("utf-8", "replace").split())

    def _obey(self, caller: Caller, words: list[str]) -> None:
        if words[:1] == [MARK.strip()]:
            peer = caller.sock.getpeername()
            me = {"token": self.token, "label": self.label, "saw": [kernel.plain(peer[0]), peer[1]]}
            caller.to_say += (MARK + json.dumps(me) + "\n").encode()
        elif words[:1] == ["ping"]:
            caller.to_say += b"pong\n"
        elif words[:1] == ["info"]:
            caller.to_say += (json.dumps(kernel.tcp_info(caller.sock)) + "\n").encode()
        elif words[:1] in (["up"], ["down"]) and len(words) == 2 and words[1].isdigit():
            number = min(int(words[1]), LONGEST_MESSAGE)
            if words[0] == "up":
                caller.to_swallow = caller.swallowed = number
            else:
                caller.to_pour += number
        else:
            raise ValueError("no word of ours")

    def _say(self, caller: Caller) -> None:
        while caller.to_say or caller.to_pour:
            try:
                if caller.to_say:
                    caller.to_say = caller.to_say[caller.sock.send(caller.to_say) :]
                else:
                    caller.to_pour -= caller.sock.send(_PIECE[: caller.to_pour])
            except BlockingIOError:
                self.selector.modify(caller.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, caller)
                return
        self.selector.modify(caller.sock, selectors.EVENT_READ, caller)

    def _drop(self, caller: Caller) -> None:
        try:
            self.selector.unregister(caller.sock)
        except (KeyError, ValueError):
            pass
        caller.sock.close()
