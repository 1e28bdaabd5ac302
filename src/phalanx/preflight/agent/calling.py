"""The calling side of the network probes: many connections at once, each asked again before it is given up.

All calls of one request run in one loop, so that a hundred dead targets cost one time-out. A call is made up to three times, staggered within
the time-out: lost packets look like a firewall otherwise. What comes of it: `ok`, `silent`, `refused`, `rejected` (an ICMP message), `no-route`,
`no-neighbour`, `reset`, `mute` and `closed` (it answers, but not with our greeting), `foreign` (another service), `local` (this host could not ask).
"""

from __future__ import annotations

import errno
import json
import resource
import selectors
import socket
import time

from . import kernel
from .listening import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STAGGER = (0.0, 0.25, 0.55)  # of the time-out
_AGAIN_S = 0.3  # after an answer that was no
_MOST_AT_ONCE = 400
_STALLED_S, _BUSY_S = 0.8, 3.0
_ENOUGH = 0.5  # of the time-out, for a target that has said no once: ICMP messages are rationed
CONNECTING, GREETING, LARGE_UP, LARGE_DOWN = range(4)


class Attempt:
    """One socket of a call."""

    def __init__(self, sock: socket.socket, now: float) -> None:
        self.sock = sock
        self.began = self.last = now
        self.stage = CONNECTING
        self.to_send = b""
        self.heard = b""


class Call:
    """One address and port that is called until it has answered or the time is up."""

    def __init__(self, target: dict[str, Any], ip: str, order: int) -> None:
        self.target, self.ip, self.order = target, ip, order
        self.family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        self.attempts: list[Attempt] = []
        self.made = 0
        self.most = 1 if target.get("once") else len(_STAGGER)
        self.began = self.next = 0.0
        self.answered = False
        self.failure: dict[str, Any] = {}
        self.result: dict[str, Any] | None = None
        self.kept: socket.socket | None = None


class Caller:
    """Makes the calls of one request."""

    def __init__(self, token: str, label: str, timeout: float, patience: float, large: int) -> None:
        self.token, self.label = token, label
        self.timeout, self.patience, self.large = timeout, patience, large
        self.selector = selectors.DefaultSelector()
        self.active: list[Call] = []

    def run(self, calls: list[Call]) -> None:
        """Make all calls; each has its `result` afterwards."""
        waiting = list(calls)
        most = max(8, min(_MOST_AT_ONCE, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))
        try:
            while waiting or self.active:
                while waiting and len(self.active) < most:
                    call = waiting.pop(0)
                    call.began = time.monotonic()
                    self.active.append(call)
                    self._attempt(call)
                for key, _ in self.selector.select(0.02):
                    call, attempt = key.data
                    if call.result is None:
                        self._step(call, attempt)
                self._look_at_the_clock()
        finally:
            self.selector.close()

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        for call in list(self.active):
            if call.result is None and call.answered:
                self._look_at_the_talk(call, now)
            elif call.result is None and now - call.began >= self.timeout * (_ENOUGH if call.failure else 1):
                self._end(call, call.failure or self._silence(call))
            elif call.result is None and call.made < call.most and now >= call.next:
                self._attempt(call)
            if call.result is not None:
                self.active.remove(call)

    def _look_at_the_talk(self, call: Call, now: float) -> None:
        for attempt in call.attempts:
            quiet = now - attempt.last
            if attempt.stage == GREETING and quiet > self.patience:
                self._end(call, {"outcome": "mute"}, attempt)
            elif attempt.stage == LARGE_UP and quiet > _STALLED_S:
                info = kernel.tcp_info(attempt.sock)
                if (info.get("retransmits", 0) >= 2 and info.get("unacked", 0)) or quiet > _BUSY_S:
                    self._end(call, {"outcome": "ok", "large": "up", "info": info}, attempt)
            elif attempt.stage == LARGE_DOWN and quiet > _STALLED_S + 0.6:
                self._end(call, {"outcome": "ok", "large": "down", "info": kernel.tcp_info(attempt.sock)}, attempt)

    def _silence(self, call: Call) -> dict[str, Any]:
        return {"outcome": "no-neighbour" if kernel.neighbour_is_missing(call.ip) else "silent"}

    def _attempt(self, call: Call) -> None:
        now = time.monotonic()
        call.made += 1
        call.next = call.began + self.timeout * _STAGGER[call.made] if call.made < len(_STAGGER) else now + 3600
        try:
            sock = socket.socket(call.family, socket.SOCK_STREAM)
        except OSError as error:
            self._end(call, {"outcome": "local", "errno": error.errno})
            return
        sock.setblocking(False)
        kernel.want_errors(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        attempt = Attempt(sock, now)
        call.attempts.append(attempt)
        try:
            if call.target.get("maxseg"):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, int(call.target["maxseg"]))
            if call.target.get("source"):
                sock.bind((call.target["source"], 0))
            number = sock.connect_ex((call.ip, int(call.target["port"])))
        except OSError as error:
            number = error.errno or errno.EIO
        if number in (0, errno.EINPROGRESS):
            self.selector.register(sock, selectors.EVENT_WRITE, (call, attempt))
        else:
            self._failed(call, attempt, number)

    def _step(self, call: Call, attempt: Attempt) -> None:
        try:
            if attempt.stage == CONNECTING:
                number = attempt.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if number:
                    self._failed(call, attempt, number)
                elif call.answered:
                    self._close(attempt)  # an earlier one is already talking
                else:
                    self._greet(call, attempt)
            else:
                self._talk(call, attempt)
        except BlockingIOError:
            pass
        except OSError as error:
            self._end(call, {"outcome": "reset", "errno": error.errno, "stage": attempt.stage}, attempt)

    def _greet(self, call: Call, attempt: Attempt) -> None:
        call.answered = True
        attempt.stage, attempt.last = GREETING, time.monotonic()
        call.failure = {"seconds": attempt.last - attempt.began}
        attempt.to_send = (MARK + "hello %s %s\n" % (self.token, self.label.replace(" ", "_"))).encode()
        self.selector.modify(attempt.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, (call, attempt))

    def _talk(self, call: Call, attempt: Attempt) -> None:
        if attempt.to_send:
            sent = attempt.sock.send(attempt.to_send)
            attempt.to_send = attempt.to_send[sent:]
            if not attempt.to_send:
                attempt.last = time.monotonic()
                self.selector.modify(attempt.sock, selectors.EVENT_READ, (call, attempt))
        data = attempt.sock.recv(1 << 18)
        attempt.last = time.monotonic()
        attempt.heard += data
        if attempt.stage == GREETING:
            self._hear_greeting(call, attempt, bool(data))
        elif not data:
            self._end(call, {"outcome": "reset", "stage": attempt.stage}, attempt)
        elif attempt.stage == LARGE_UP and b"\n" in attempt.heard:
            attempt.stage, attempt.heard = LARGE_DOWN, b""
            self._send(call, attempt, b"down %d\n" % self.large)
        elif attempt.stage == LARGE_DOWN and len(attempt.heard) >= self.large:
            self._end(call, {"outcome": "ok", "large": "ok", "info": kernel.tcp_info(attempt.sock)}, attempt)

    def _hear_greeting(self, call: Call, attempt: Attempt, goes_on: bool) -> None:
        line, newline, _ = attempt.heard.partition(b"\n")
        mark = MARK.encode()
        ours = line.startswith(mark) or mark.startswith(line)
        if newline and ours:
            peer = json.loads(line[len(mark) :].decode("utf-8", "replace"))
            call.failure.update(peer=peer.get("label"), token=peer.get("token"), saw=peer.get("saw"))
            if not self.large or call.target.get("small"):
                self._end(call, {"outcome": "ok", "info": kernel.tcp_info(attempt.sock)}, attempt)
                return
            attempt.stage, attempt.heard = LARGE_UP, b""
            self._send(call, attempt, b"up %d\n" % self.large + bytes(self.large))
        elif not goes_on and not attempt.heard:
            self._end(call, {"outcome": "closed"}, attempt)
        elif newline or not goes_on or not ours or len(attempt.heard) > 4096:
            banner = attempt.heard[:80].decode("utf-8", "replace")
            self._end(call, {"outcome": "foreign", "banner": banner}, attempt)

    def _send(self, call: Call, attempt: Attempt, data: bytes) -> None:
        attempt.to_send = data
        self.selector.modify(attempt.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, (call, attempt))

    def _failed(self, call: Call, attempt: Attempt, number: int) -> None:
        icmp = kernel.icmp_error(attempt.sock)
        took = time.monotonic() - attempt.began
        self._close(attempt)
        call.attempts.remove(attempt)
        outcome = _name_of(number, icmp, took)
        if number == errno.EHOSTUNREACH and outcome != "no-neighbour" and kernel.neighbour_is_missing(call.ip):
            outcome = "no-neighbour"  # asked for a moment ago, by another call: the kernel answers at once
        if number == errno.EADDRNOTAVAIL:  # no address of this family, or no port left to call from
            outcome = "local" if kernel.route_to(call.ip).get("source") else "no-route"
        call.failure = {"outcome": outcome, "errno": number, "seconds": took, "icmp": icmp}
        if call.made < min(2, call.most):
            call.next = time.monotonic() + _AGAIN_S
        elif not call.answered:
            self._end(call, call.failure)

    def _close(self, attempt: Attempt) -> None:
        try:
            self.selector.unregister(attempt.sock)
        except (KeyError, ValueError):
            pass
        attempt.sock.close()

    def _end(self, call: Call, told: dict[str, Any], speaking: Attempt | None = None) -> None:
        result = {"id": call.target.get("id"), "ip": call.ip, "order": call.order, "port": call.target["port"]}
        result.update(
            call.failure, attempts=call.made, **{name: told[name] for name in told if name not in call.failure}
        )
        if speaking is not None:
            result.update(told)
            try:
                result["local"] = kernel.plain(speaking.sock.getsockname()[0])
            except OSError:
                pass
        if (
            speaking is not None
            and call.target.get("keep")
            and result.get("large", "ok") == "ok"
            and told["outcome"] == "ok"
        ):
            self.selector.unregister(speaking.sock)
            call.kept = speaking.sock
            call.attempts.remove(speaking)
        for attempt in call.attempts:
            self._close(attempt)
        if result["outcome"] != "ok":
            result["route"] = kernel.route_to(call.ip)
        call.result = result


def _name_of(number: int, icmp: dict[str, Any] | None, took: float) -> str:
    if icmp is not None:
        own = icmp.get("from") in (None, "127.0.0.1")
        unreachable = not icmp["v6"] and icmp["type"] == 3 and icmp["code"] in (0, 1) and took > 0.9
        return "no-neighbour" if unreachable and own else "rejected"
    if number == errno.ECONNREFUSED:
        return "refused"
    if number in (errno.ENETUNREACH, errno.EACCES, errno.EINVAL):
        return "no-route"
    if number == errno.EHOSTUNREACH:
        # The kernel asks for a neighbour for about three seconds; a route that says "unreachable" answers at once.
        return "no-neighbour" if took > 0.9 else "no-route"
    if number in (errno.ECONNRESET, errno.EPIPE):
        return "reset"
    return "silent" if number == errno.ETIMEDOUT else "local"


def resolve(address: str, port: int) -> list[str]:
    """The addresses of a name in the order in which libraries would try them."""
    found = socket.getaddrinfo(address, port, socket.AF_UNSPEC, socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))[:4]
