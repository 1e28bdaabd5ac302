"""The store at which Horovod's ranks meet: values put and got by HTTP. A small process beside the job.

    python -I -S store.py FD SIZE   serves a job of SIZE ranks on the listening socket FD until it is ended; SIZE is `4,2`
                                    where node 0 has 4 of them and node 1 has 2

PUT /scope/key keeps the body, GET /scope/key returns it or 404. DELETE /scope/rank says that a rank is done with a scope: when
all of its ranks are, it is emptied, so that they can meet again. Uses nothing of ours.
"""

import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Values:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sizes = [1]
        self.kept: dict[str, dict[str, bytes]] = {}
        self.done: dict[str, set[str]] = {}

    def members(self, scope: str) -> int:
        """How many ranks share a scope: all of them, those of one host (`local_node1`), or those of one local number, one
        from each host that has so many (`cross_3`)."""
        digits = scope[len(scope.rstrip("0123456789")) :]
        if scope.startswith("cross"):
            return max(1, sum(size > int(digits or 0) for size in self.sizes))
        if scope.startswith("local") and digits and int(digits) < len(self.sizes):
            return self.sizes[int(digits)]
        return sum(self.sizes)


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
        value = self.rfile.read(length)
        with _VALUES.lock:
            _VALUES.kept.setdefault(self._scope, {})[self._key] = value
        self._answer(200)

    def do_DELETE(self) -> None:
        """A rank is done with a scope."""
        with _VALUES.lock:
            done = _VALUES.done.setdefault(self._scope, set())
            done.add(self._key)
            if len(done) >= _VALUES.members(self._scope):
                _VALUES.kept.pop(self._scope, None)
                done.clear()
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
    _VALUES.sizes = [int(size) for size in sys.argv[2].split(",")]
    listening = socket.socket(fileno=int(sys.argv[1]))
    server = _Server(listening.getsockname()[:2], Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.serve_forever()


if __name__ == "__main__":
    main()
