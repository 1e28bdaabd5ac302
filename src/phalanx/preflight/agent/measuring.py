"""One path measured: latency, loss without congestion, and bandwidth both ways, from the kernel's own figures where it has them."""

from __future__ import annotations

import json
import socket
import time

from . import kernel
from .listening import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FIRST_CHUNK, _LAST_CHUNK = 1 << 15, 8 << 20
_TELLING = 1 << 17
_FAST = 400e6  # bytes a second: above that nothing is compared
_DRIP_S = 0.0004


class Path:
    """A connection to another party's listener, spoken to in turns."""

    def __init__(self, token: str, label: str, target: dict[str, Any], timeout: float) -> None:
        self.ends = time.monotonic() + timeout
        self.sock = socket.create_connection((target["address"], int(target["port"])), min(2.0, timeout))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.heard = b""
        self.sock.sendall((MARK + "hello %s %s\n" % (token, label.replace(" ", "_"))).encode())
        self.line()

    def line(self) -> bytes:
        """The next line."""
        while b"\n" not in self.heard:
            self._more()
        line, _, self.heard = self.heard.partition(b"\n")
        return line

    def take(self, number: int) -> None:
        """That many bytes, not looked at."""
        got = len(self.heard)
        self.heard = self.heard[number:]
        while got < number:
            self.sock.settimeout(max(0.05, self.ends - time.monotonic()))
            data = self.sock.recv(min(1 << 18, number - got))
            if not data:
                raise ConnectionResetError("closed")
            got += len(data)

    def _more(self) -> None:
        self.sock.settimeout(max(0.05, self.ends - time.monotonic()))
        data = self.sock.recv(1 << 16)
        if not data:
            raise ConnectionResetError("closed")
        self.heard += data

    def info(self) -> tuple[dict[str, int], dict[str, int]]:
        """The kernel's figures at this end and at the other."""
        self.sock.sendall(b"info\n")
        other = json.loads(self.line().decode())
        return kernel.tcp_info(self.sock), other


def measure_one(token: str, label: str, target: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    """All figures of one path; `stage` is where it stopped if it did."""
    told: dict[str, Any] = {"outcome": "ok"}
    path = None
    stage = "connect"
    try:
        path = Path(token, label, target, float(args.get("timeout", 1.2)))
        stage = "latency"
        told.update(_latency(path))
        stage = "drip"
        drips, seconds = int(args.get("drips", 120)), float(args.get("seconds", 0.1))
        if drips:
            told.update(_drip(path, drips))
        losses = told.get("drip", {"up": 0, "down": 0})
        if seconds and max(losses["up"], losses["down"]) < 2:  # of a path with losses the bandwidth tells nothing new
            stage = "up"
            told["up"] = _stream(path, seconds, _send)
            stage = "down"
            told["down"] = _stream(path, seconds, _fetch)
        mine, other = path.info()
        told["min_rtt_us"] = mine.get("min_rtt") or None
        told["up_delivery"], told["down_delivery"] = mine.get("delivery_rate", 0), other.get("delivery_rate", 0)
    except (OSError, ValueError) as error:
        told.update(outcome="stalled", stage=stage, error=str(error))
        if path is not None:
            info = kernel.tcp_info(path.sock)
            told.update(resent=info.get("total_retrans", 0), min_rtt_us=info.get("min_rtt") or None)
    finally:
        if path is not None:
            path.sock.close()
    return told


def _latency(path: Path) -> dict[str, Any]:
    taken: list[float] = []
    began = time.monotonic()
    while len(taken) < 8 and time.monotonic() - began < 0.1:
        at = time.monotonic()
        path.sock.sendall(b"ping\n")
        path.line()
        taken.append(time.monotonic() - at)
    taken.sort()
    return {"ping_us": int(taken[0] * 1e6), "usual_ping_us": int(taken[len(taken) // 2] * 1e6)}


def _drip(path: Path, number: int) -> dict[str, Any]:
    """Small messages at a low rate: what is lost of them is not lost for want of bandwidth."""
    mine, other = path.info()
    began, sent = time.monotonic(), 0
    while sent < number:
        time.sleep(_DRIP_S)
        # On a busy host sleep lasts longer: what is due by then is sent together.
        due = min(number, int((time.monotonic() - began) / _DRIP_S))
        for _ in range(due - sent):
            path.sock.sendall(b"ping\n")
        sent = due
    for _ in range(number):
        path.line()
    mine_after, other_after = path.info()

    def grown(before: dict[str, int], after: dict[str, int], name: str) -> int:
        return after.get(name, 0) - before.get(name, 0)

    def resent(before: dict[str, int], after: dict[str, int]) -> int:
        # What the other end got twice was not lost, only late.
        return max(0, grown(before, after, "total_retrans") - grown(before, after, "dsack_dups"))

    return {
        "drip": {
            "up": resent(mine, mine_after),
            "up_of": grown(mine, mine_after, "data_segs_out"),
            "down": resent(other, other_after),
            "down_of": grown(other, other_after, "data_segs_out"),
        }
    }


def _send(path: Path, chunk: int) -> None:
    path.sock.settimeout(max(0.05, path.ends - time.monotonic()))
    path.sock.sendall(b"up %d\n" % chunk + bytes(chunk))
    path.line()


def _fetch(path: Path, chunk: int) -> None:
    path.sock.sendall(b"down %d\n" % chunk)
    path.take(chunk)


def _stream(path: Path, seconds: float, move: Any) -> dict[str, Any]:
    """Growing pieces until the time is up or it is fast enough; the best counts, for a busy host only ever slows one down."""
    began = time.monotonic()
    chunk, total, best = _FIRST_CHUNK, 0, 0.0
    while not total or (time.monotonic() - began < seconds and chunk <= _LAST_CHUNK and best < _FAST):
        at = time.monotonic()
        move(path, chunk)
        rate = chunk / max(1e-6, time.monotonic() - at)
        best = max(best, rate) if chunk > _TELLING else rate  # a short one may pass out of some queue's credit
        total += chunk
        chunk *= 2
    return {"bytes": total, "rate": int(best), "seconds": round(time.monotonic() - began, 4)}
