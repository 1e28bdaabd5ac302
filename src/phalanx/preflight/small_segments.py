"""A way for ssh that sends small packets only: `python small_segments.py HOST PORT`, as its ProxyCommand.

Where large packets vanish, ssh hangs in its handshake. By this way it comes through, and the check can say what is wrong.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

_SEGMENT = 512
_PATIENCE_S = 2.0


def connect(host: str, port: int) -> socket.socket:
    """The first address that answers."""
    last: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, target in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT)
            sock.settimeout(_PATIENCE_S)
            sock.connect(target)
            sock.settimeout(None)
            return sock
        except OSError as error:
            sock.close()
            last = error
    raise last


def main() -> None:
    """Carry standard input and output over the connection until one side ends."""
    try:
        sock = connect(sys.argv[1], int(sys.argv[2]))
    except OSError as error:
        sys.exit(str(error))

    def send() -> None:
        while data := os.read(0, 65536):
            sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    while data := sock.recv(65536):
        os.write(1, data)


if __name__ == "__main__":
    main()
