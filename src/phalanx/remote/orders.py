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
        self._end: Reason | None = None
        self.is_gone = False  # the driver, or the line to it
        self._thread = threading.Thread(target=self._read, name="phalanx-orders", daemon=True)
        self._thread.start()

    def next(self, wait: float) -> Message | None:
        """The next message; None if there is none for so long, or never will be."""
        if self.is_gone and self._messages.empty():
            return None
        with contextlib.suppress(queue.Empty):
            return self._messages.get(timeout=wait)
        return None

    def end(self) -> Reason | None:
        """Why the attempt is to be ended, told once."""
        reason, self._end = self._end, None
        return reason

    def _read(self) -> None:
        try:
            while (message := self._link.receive()) is not None:
                self._take(message)
        except (LinkError, PackingError, OSError):
            pass
        self.is_gone = True
        self._end = Reason("interrupted", "the driver is gone", 143)
        self._messages.put(None)

    def _take(self, message: Message) -> None:
        data = message.data
        match message.kind:
            case "put":
                path = self._scratch / safe_path(str(data["name"])).name
                with path.open("r+b" if int(data["offset"]) else "wb") as file:
                    file.seek(int(data["offset"]))
                    file.write(message.payload)
            case "end":
                kind = "killed" if data.get("force") else str(data["reason"])
                self._end = Reason(kind, str(data["text"]), int(data.get("status", 1)))
            case _:
                self._messages.put(message)
