"""The store at which Horovod's ranks meet: values put and got by HTTP. A small process beside the job.

    python -I -S store.py FD   serves on the listening socket FD until it is ended

PUT /scope/key keeps the body, GET /scope/key returns it or 404. DELETE /scope/rank says that a rank is done with a scope: when
all of its ranks are, it is emptied, so that they can meet again. Who they are need not be told: each puts its address under its
number and is done only when it is connected with all others, so that nobody is done before everybody has put his.
"""

import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_LARGEST_VALUE = 1 << 20  # bytes; ranks put addresses and small tables
_MOST_BYTES = 256 << 20


class _Values:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: dict[str, dict[str, bytes]] = {}
        self.done: dict[str, set[str]] = {}

    def size(self) -> int:
        """Bytes kept, names included."""
        return sum(len(key) + len(value) + 100 for scope in self.kept.values() for key, value in scope.items())

    def leave(self, scope: str, rank: str) -> None:
        """A rank is done with a scope."""
        done = self.done.setdefault(scope, set())
        done.add(rank)
        if {key for key in self.kept.get(scope, ()) if key.isdigit()} <= done:
            self.kept.pop(scope, None)
            done.clear()


_VALUES = _Values()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    timeout = 10

    def do_GET(self) -> None:
        """Tell a value; 404 until somebody has put it: the asker tries again."""
        with _VALUES.lock:
            value = _VALUES.kept.get(self._scope, {}).get(self._key)
        self._answer(404 if value is None else 200, value or b"")

    def do_PUT(self) -> None:
        """Keep a value."""
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            self._answer(411)
            return
        if not 0 <= length <= _LARGEST_VALUE:
            self.close_connection = True
            self._answer(413)
            return
        value = self.rfile.read(length)
        with _VALUES.lock:
            has_room = _VALUES.size() + len(value) <= _MOST_BYTES
            if has_room:
                _VALUES.kept.setdefault(self._scope, {})[self._key] = value
        self._answer(200 if has_room else 507)

    def do_DELETE(self) -> None:
        """A rank is done with a scope."""
        with _VALUES.lock:
            _VALUES.leave(self._scope, self._key)
        self._answer(200)

    @property
    def _scope(self) -> str:
        return self.path.strip("/").partition("/")[0]

    @property
    def _key(self) -> str:
        return self.path.strip("/").partition("/")[2]

    def _answer(self, status: int, value: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(value)))
        self.end_headers()
        self.wfile.write(value)

    def log_message(self, *_: object) -> None:
        """Silent: the job's output is the ranks'."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True


def main() -> None:
    """Serve on the inherited socket."""
    listening = socket.socket(fileno=int(sys.argv[1]))
    server = _Server(listening.getsockname()[:2], Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.serve_forever()


if __name__ == "__main__":
    main()
