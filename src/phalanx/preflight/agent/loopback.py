"""Section `loopback`: whether this host reaches itself, at 127.0.0.1 and at its own addresses, as ranks of one host do."""

from __future__ import annotations

import socket
import threading

from . import interfaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .collect import Setting

_PATIENCE_S = 1.0
_MOST = 4


def loopback(setting: Setting) -> dict[str, str]:
    """By address, `ok` or the error; each is tried twice."""
    found: dict[str, str] = {}
    threads = [threading.Thread(target=_try, args=(one, found), daemon=True) for one in _own(setting)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * _PATIENCE_S + 0.5)
    return dict(found)


def _own(setting: Setting) -> list[str]:
    own = ["127.0.0.1"]
    for told in interfaces.interfaces(setting).values():
        if told["up"] and not told["loopback"]:
            own += [written.partition("/")[0] for written in told["addresses"] if ":" not in written]
    return list(dict.fromkeys(own))[:_MOST]


def _try(address: str, found: dict[str, str]) -> None:
    found[address] = "no answer"
    for _ in range(2):
        try:
            with socket.socket() as server:
                server.bind((address, 0))
                server.listen(1)
                with socket.create_connection(server.getsockname(), timeout=_PATIENCE_S):
                    found[address] = "ok"
                    return
        except OSError as error:
            found[address] = "timed out" if isinstance(error, socket.timeout) else str(error.strerror or error)


FACTS = {"loopback": loopback}
