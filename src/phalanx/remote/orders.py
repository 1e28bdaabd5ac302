"""What the driver tells an agent: read in a thread of its own, so that an order is heard while ranks run."""

from __future__ import annotations

import contextlib
import queue
import threading
from pathlib import Path

from phalanx.remote.link import Link, LinkError, Message
from phalanx.remote.packing import PackingError, safe_path
from phalanx.run.ending import Reason


class Orders:
    """Messages for the agent's loop, files put on disk as they come, and the one that ends an attempt."""

    def __init__(self, link: Link, scratch: Path) -> None:
        self._link = link
        self._scratch = scratch
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        # By attempt: an order that comes late, when its attempt has ended by itself, is not for the next one.
        self._ends: dict[int, Reason] = {}
        self._over: set[int] = set()
        self.is_gone = False  # the driver, or the line to it
        self._tells_of_loss = True
        self._thread = threading.Thread(target=self._read, name="phalanx-orders", daemon=True)
        self._thread.start()

    def next(self, wait: float) -> Message | None:
        """The next message; None if there is none for so long, or never will be."""
        if self.is_gone and self._messages.empty():
            return None
        with contextlib.suppress(queue.Empty):
            return self._messages.get(timeout=wait)
        return None

    def end(self, attempt: int) -> Reason | None:
        """Why this attempt is to be ended, told once."""
        if self.is_gone and self._tells_of_loss:
            self._tells_of_loss = False
            return Reason("interrupted", "the driver is gone", 143)
        return self._ends.pop(attempt, None)

    def is_over(self, attempt: int) -> bool:
        """Whether nobody on any node needs a parameter server any more."""
        return attempt in self._over

    def _read(self) -> None:
        try:
            while (message := self._link.receive()) is not None:
                self._take(message)
        except (LinkError, PackingError, OSError, KeyError, ValueError, TypeError):
            pass  # a driver that breaks the rules is none
        self.is_gone = True
        self._messages.put(None)

    def _take(self, message: Message) -> None:
        data = message.data
        match message.kind:
            case "put":
                self._put(safe_path(str(data["name"])).name, int(data["offset"]), message.payload)
            case "end":
                kind = "killed" if data.get("force") else str(data["reason"])
                self._ends[int(data["attempt"])] = Reason(kind, str(data["text"]), int(data.get("status", 1)))
            case "over":
                self._over.add(int(data["attempt"]))
            case _:
                self._messages.put(message)

    def _put(self, name: str, offset: int, payload: bytes) -> None:
        """A piece of a file. A full disk is told: the driver waits for an answer, and its user for the reason."""
        path = self._scratch / name
        try:
            with path.open("r+b" if offset else "wb") as file:
                file.seek(offset)
                file.write(payload)
        except OSError as error:
            self._link.send("refused", text=f"{name} cannot be written to {path.parent}: {error.strerror}")
