"""Runs in the switch: carries frames between two links, each a while later. `relay.py p1 r1 20` keeps them for 20 ms.

Standard library only and started by its path. The kernel here has no netem; frames are read and written raw instead.
"""

from __future__ import annotations

import collections
import selectors
import socket
import sys
import time

_EVERY_PROTOCOL = 3
_OUTGOING = 4
_LONGEST_FRAME = 1 << 16


def open_link(name: str) -> socket.socket:
    """All frames of one link."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERY_PROTOCOL))
    sock.bind((name, 0))
    sock.setblocking(False)
    return sock


def read_all(sock: socket.socket) -> list[bytes]:
    """What came in; what we sent ourselves is seen too, and left out."""
    found: list[bytes] = []
    while True:
        try:
            frame, address = sock.recvfrom(_LONGEST_FRAME)
        except OSError:  # nothing more, or the link went down
            return found
        if address[2] != _OUTGOING:
            found.append(frame)


def main(near: str, far: str, milliseconds: float) -> None:
    """Carry frames until ended."""
    links = [open_link(near), open_link(far)]
    selector = selectors.DefaultSelector()
    for number, link in enumerate(links):
        selector.register(link, selectors.EVENT_READ, number)
    waiting: collections.deque[tuple[float, int, bytes]] = collections.deque()
    print("up", flush=True)
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for key, _ in selector.select(pause):
            due = time.monotonic() + milliseconds / 1000
            waiting.extend((due, 1 - key.data, frame) for frame in read_all(links[key.data]))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, to, frame = waiting.popleft()
            try:
                links[to].send(frame)
            except OSError:
                pass  # too long for the link, or the link is down: lost, as on a wire


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
