"""The line between driver and agent: messages in frames, proof of the job's token on both sides, nothing that is unpickled.

A frame is two lengths, a JSON object and raw bytes. Over a network every frame after the handshake carries a code that only
a holder of the token can make, counted, so that nobody else can say, change, repeat or drop one unnoticed. The contents
are not hidden: where the network is not trusted, let the agents be started over SSH, which carries the frames itself.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import re
import secrets
import select
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PROTOCOL = 1
_LENGTHS = struct.Struct(">II")
_COUNT = struct.Struct(">Q")
_CODE = 32  # bytes of a SHA-256
_MOST_HEADER = 1 << 20
MOST_PAYLOAD = 1 << 20  # what is larger is sent in pieces
_MOST_BEFORE_PROOF = 4096  # a stranger cannot make us keep more than this
_MARKER = b"\0phalanx agent\n"  # before the first frame, where a login shell may have printed something
_MOST_NOISE = 1 << 16


class LinkError(Exception):
    """The other side broke the rules, or could not prove that it belongs to the job."""


@dataclass(frozen=True, slots=True)
class Message:
    """One frame."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    payload: bytes = b""


class Link:
    """Both directions of one line. `send` and `hang_up` may be called from several threads, `receive` and `close` from one."""

    def __init__(
        self,
        reading: int,
        writing: int,
        hang_up: Callable[[], None],
        close: Callable[[], None],
        is_private: bool,
        patience: float | None,
    ) -> None:
        self._reading = os.fdopen(reading, "rb", buffering=1 << 18, closefd=False)
        self._writing = writing
        self._hang_up = hang_up
        self._close = close
        self._is_private = is_private  # a pipe or an SSH channel: nobody else can write into it
        self._patience = patience
        self._sending = threading.Lock()
        self._is_over = False
        self._keys: tuple[bytes, bytes] | None = None  # of what we send, of what we receive
        self._sent = self._received = 0
        self._limit = _MOST_BEFORE_PROOF

    @classmethod
    def over_socket(cls, connected: socket.socket, patience: float | None = None) -> Link:
        """A line over TCP. With `patience` a message that the other side does not take for so many seconds is an error."""
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if patience is not None:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(patience), 0))
        end = connected.fileno()
        return cls(end, end, lambda: connected.shutdown(socket.SHUT_RDWR), connected.close, False, patience)

    @classmethod
    def over_pipes(
        cls,
        reading: int,
        writing: int,
        hang_up: Callable[[], None] = lambda: None,
        close: Callable[[], None] = lambda: None,
        patience: float | None = None,
    ) -> Link:
        """A line over two pipes that only the two sides hold. `hang_up` closes the end that is written to."""
        if patience is not None:
            os.set_blocking(writing, False)
        return cls(reading, writing, hang_up, close, True, patience)

    def mark(self) -> None:
        """Say that frames begin here."""
        _write_all(self._writing, [_MARKER], self._patience)

    def await_mark(self) -> None:
        """Pass over what a login shell or a module system prints before the agent speaks. Raises LinkError."""
        heard = bytearray()
        while not heard.endswith(_MARKER):
            piece = self._read(1)
            if piece is None or len(heard) > _MOST_NOISE:
                said = heard.decode("utf-8", "replace").strip()[-200:]
                raise LinkError("no agent speaks there" + (f"; what was said instead: {said!r}" if said else ""))
            heard += piece

    def send(self, kind: str, payload: bytes | memoryview = b"", /, **data: Any) -> None:
        """Send one message. Raises OSError when the line is broken or was hung up."""
        header = json.dumps({"kind": kind, **data}, separators=(",", ":"), default=str).encode()
        with self._sending:
            if self._is_over:
                raise BrokenPipeError("the line was hung up")
            parts = [_LENGTHS.pack(len(header), len(payload)), header, payload]
            if self._keys is not None:
                parts.append(_code(self._keys[0], self._sent, header, payload))
                self._sent += 1
            _write_all(self._writing, parts, self._patience)

    def receive(self) -> Message | None:
        """The next message; None when the other side is gone. Raises LinkError for what is no message of ours."""
        lengths = self._read(_LENGTHS.size)
        if lengths is None:
            return None
        head, body = _LENGTHS.unpack(lengths)
        if head > min(self._limit, _MOST_HEADER) or body > min(self._limit, MOST_PAYLOAD):
            raise LinkError("a frame that is larger than any of ours")
        header, payload = self._read(head), self._read(body)
        if header is None or payload is None:
            return None
        if self._keys is not None:
            code = self._read(_CODE)
            if code is None:
                return None
            if not hmac.compare_digest(code, _code(self._keys[1], self._received, header, payload)):
                raise LinkError("a frame that was not made by a holder of the job's token")
            self._received += 1
        return _message(header, payload)

    def prove(self, token: str, is_driver: bool) -> None:
        """The handshake. Both sides show that they hold the token, without showing it. Raises LinkError or OSError."""
        mine = secrets.token_hex(16)
        self.send("hello", protocol=PROTOCOL, nonce=mine)
        first = self._expect("hello")
        theirs = str(first.data.get("nonce", ""))
        if first.data.get("protocol") != PROTOCOL:
            raise LinkError("the other side is of another release of phalanx; install the same on all nodes")
        if not re.fullmatch(r"[0-9a-f]{32}", theirs) or theirs == mine:
            raise LinkError("no proper greeting")
        nonces = (mine + theirs) if is_driver else (theirs + mine)
        roles = (b"driver", b"agent") if is_driver else (b"agent", b"driver")
        self.send("proof", proof=_derive(token, roles[0], nonces).hex())
        given = str(self._expect("proof").data.get("proof", ""))
        proof = _derive(token, roles[1], nonces).hex()
        if not hmac.compare_digest(given.encode("utf-8", "replace"), proof.encode()):
            raise LinkError("the other side does not hold this job's token")
        if not self._is_private:
            self._keys = (
                _derive(token, roles[0] + b" sends", nonces),
                _derive(token, roles[1] + b" sends", nonces),
            )
        self._limit = max(_MOST_HEADER, MOST_PAYLOAD)

    def hang_up(self) -> None:
        """Say no more. The other side sees the end of the line, and so does whoever reads here."""
        self._is_over = True
        # A message that is under way keeps the descriptor: closed under it, its number could be another file's by now.
        if self._sending.acquire(blocking=False):
            try:
                with contextlib.suppress(OSError):
                    self._hang_up()
            finally:
                self._sending.release()

    def close(self) -> None:
        """Hang up and give the descriptors back; for the one who reads."""
        self.hang_up()
        with contextlib.suppress(OSError):
            self._close()

    def _expect(self, kind: str) -> Message:
        message = self.receive()
        if message is None:
            raise LinkError("the other side hung up during the greeting")
        if message.kind != kind:
            raise LinkError(f"{message.kind} instead of {kind}")
        return message

    def _read(self, count: int) -> bytes | None:
        try:
            data = self._reading.read(count)
        except (OSError, ValueError):
            return None
        return data if len(data) == count else None


def _message(header: bytes, payload: bytes) -> Message:
    try:
        data = json.loads(header)
        return Message(str(data.pop("kind")), data, payload)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise LinkError("a frame that holds no message") from error


def _derive(token: str, purpose: bytes, nonces: str) -> bytes:
    return hmac.digest(token.encode(), b"phalanx/1 " + purpose + b" " + nonces.encode(), "sha256")


def _code(key: bytes, count: int, header: bytes, payload: bytes | memoryview) -> bytes:
    code = hmac.new(key, _COUNT.pack(count), "sha256")
    code.update(_COUNT.pack(len(header)))
    code.update(header)
    code.update(payload)
    return code.digest()


def _write_all(descriptor: int, parts: list[bytes | memoryview], patience: float | None) -> None:
    left = [memoryview(part).cast("B") for part in parts if len(part)]
    while left:
        try:
            written = os.writev(descriptor, left)
        except BlockingIOError:
            waits = select.poll()
            waits.register(descriptor, select.POLLOUT)
            if not waits.poll(None if patience is None else patience * 1000):
                raise TimeoutError(f"the other side has taken nothing for {patience:g} s") from None
            continue
        while left and written >= len(left[0]):
            written -= len(left[0])
            left.pop(0)
        if left and written:
            left[0] = left[0][written:]
