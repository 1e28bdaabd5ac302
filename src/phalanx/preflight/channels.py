"""Ways to speak to an agent: in this process, over a program's pipes, over a socket. All carry the same lines."""

from __future__ import annotations

import itertools
import json
import queue
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from phalanx.preflight.agent import serve
from phalanx.preflight.packing import packed_agent

_LAST_WORDS = 16_000
_SEND_S = 5.0
_BEAT_S = 1.0


class AgentError(Exception):
    """The agent could not do what it was asked, or is gone; the message says why."""


class AgentTimeoutError(AgentError):
    """No answer in time."""


class Channel(Protocol):
    """What a target speaks through."""

    def ask(self, verb: str, args: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
        """The answers to one request. Raises AgentError."""

    def close(self) -> None:
        """End the agent, if it is ours."""


class Conversation:
    """Requests under way on one line of speech, and who waits for which answer."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._gone: str | None = None
        self.greeted = threading.Event()
        self.hello: dict[str, Any] = {}

    def open(self) -> tuple[int, queue.SimpleQueue[dict[str, Any]]]:
        """A number for a new request."""
        with self._lock:
            if self._gone is not None:
                raise AgentError(self._gone)
            number = next(self._numbers)
            self._waiting[number] = queue.SimpleQueue()
            return number, self._waiting[number]

    def heard(self, line: str | bytes) -> None:
        """A line from the agent, or noise that its shell printed."""
        try:
            message = json.loads(line)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        if "hello" in message:
            self.hello = message
            self.greeted.set()
        with self._lock:
            waiting = self._waiting.get(message.get("id", -1))
        if waiting is not None:
            waiting.put(message)

    def broken(self, why: str) -> None:
        """Nothing will come any more."""
        with self._lock:
            self._gone = self._gone or why
            waiting = list(self._waiting.values())
        self.greeted.set()
        for one in waiting:
            one.put({"error": why, "end": True})

    @property
    def is_broken(self) -> bool:
        """Whether the other side is gone."""
        return self._gone is not None

    def collect(self, number: int, answers: queue.SimpleQueue[dict[str, Any]], timeout: float) -> list[dict[str, Any]]:
        """Wait for the end of the answer."""
        found: list[dict[str, Any]] = []
        until = time.monotonic() + timeout
        try:
            while True:
                try:
                    message = answers.get(timeout=max(0.001, until - time.monotonic()))
                except queue.Empty:
                    raise AgentTimeoutError(f"no answer within {timeout:g} s") from None
                if "error" in message:
                    raise AgentError(str(message["error"]))
                if "data" in message:
                    found.append(message["data"])
                if message.get("end"):
                    return found
        finally:
            with self._lock:
                self._waiting.pop(number, None)


class LocalChannel:
    """The agent in this very process: its environment, its limits, its network."""

    def __init__(self) -> None:
        self._verbs = serve.verbs()

    def ask(self, verb: str, args: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
        """Answered in a thread, as on any other host."""
        conversation = Conversation()
        number, answers = conversation.open()
        request = {"id": number, "do": verb, "args": args}
        send = lambda message: conversation.heard(json.dumps(message))  # noqa: E731 (JSON, so that no object is shared)
        threading.Thread(target=serve.answer, args=(self._verbs, request, send), daemon=True).start()
        return conversation.collect(number, answers, timeout)

    def close(self) -> None:
        """Nothing to end."""


class StreamChannel:
    """An agent that another program brings: ssh, kubectl exec, nsenter, srun."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)
        self._conversation = Conversation()
        self._last_words = b""
        self._lock = threading.Lock()
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise AgentError(f"{self.command[0]}: {error.strerror}") from error
        self._hearing = threading.Thread(target=self._hear_errors, daemon=True)
        self._hearing.start()
        threading.Thread(target=self._hear, daemon=True).start()
        self._send(packed_agent())

    def wait_for_hello(self, timeout: float) -> dict[str, Any]:
        """The agent's greeting. Raises AgentError with what the program said if it does not come."""
        if not self._conversation.greeted.wait(timeout):
            raise AgentTimeoutError(f"did not start within {timeout:g} s: {self.last_words() or 'it said nothing'}")
        if not self._conversation.hello:
            raise AgentError(self.last_words() or f"{self.command[0]} ended without a word")
        return self._conversation.hello

    @property
    def status(self) -> int | None:
        """How the program ended; None while it runs."""
        return self._process.poll()

    def last_words(self) -> str:
        """What it printed on standard error."""
        return self._last_words.decode("utf-8", "replace").strip()

    def ask(self, verb: str, args: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
        """Over the pipes."""
        number, answers = self._conversation.open()
        self._send(json.dumps({"id": number, "do": verb, "args": args}))
        return self._conversation.collect(number, answers, timeout)

    def close(self) -> None:
        """The end of its input ends the agent; what does not end by itself is ended."""
        with suppress(OSError, ValueError), self._lock:
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, line: str) -> None:
        # A thread of its own could not be told of a failure; a line that is too long for the pipe waits for its reader.
        try:
            with self._lock:
                if self._process.stdin is not None:
                    self._process.stdin.write(line.encode() + b"\n")
                    self._process.stdin.flush()
        except (OSError, ValueError):
            self._conversation.broken(self.last_words() or "the connection is closed")

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._conversation.heard(line)
        self._process.wait()
        self._hearing.join(1.0)
        self._conversation.broken(self.last_words() or f"it ended with status {self._process.returncode}")

    def _hear_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._last_words = (self._last_words + line)[-_LAST_WORDS:]


class SocketChannel:
    """An agent that has connected to us: a rank under the user's own launcher."""

    def __init__(self, connection: socket.socket) -> None:
        self._conversation = Conversation()
        self._lock = threading.Lock()
        self._socket = connection
        connection.settimeout(None)
        # A full buffer that nobody empties must not hold up the check.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(_SEND_S), 0))
        threading.Thread(target=self._hear, daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()

    def ask(self, verb: str, args: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
        """Over the socket."""
        number, answers = self._conversation.open()
        self._send({"id": number, "do": verb, "args": args})
        return self._conversation.collect(number, answers, timeout)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            with self._lock:
                self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            self._conversation.broken(f"the connection broke: {error.strerror}")

    def _beat(self) -> None:
        """A sign of life for the agent, until the connection ends."""
        while not self._conversation.is_broken:
            time.sleep(_BEAT_S)
            self._send({"beat": 1})

    def close(self) -> None:
        """The agent at the other end may go."""
        self._send({"bye": 1})
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _hear(self) -> None:
        with suppress(OSError), self._socket.makefile("rb") as lines:
            for line in lines:
                self._conversation.heard(line)
        self._conversation.broken("the connection is closed")
