"""Ranks meet in a folder that all can write: each says that it is here, and whoever leads asks the others through files.

NAME.here             a rank: `{"rank": 3, "host": "node1", "size": 4}`, touched every second
NAME.to, NAME.from    requests to it, answers of it, one JSON object a line
leader                the rank that leads, touched every second
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.preflight.agent import serve
from phalanx.preflight.channels import Conversation
from phalanx.preflight.meeting.seat import Seat

_POLL_S = 0.03
_BEAT_S = 1.0
_STALE_S = 10.0
_LEAVING_S = 3.0


class FolderChannel:
    """A target that reads its requests from a file and writes its answers to another."""

    def __init__(self, folder: Path, name: str) -> None:
        self._requests = folder / f"{name}.to"
        self._answers = folder / f"{name}.from"
        self._conversation = Conversation()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._hear, daemon=True).start()

    def ask(self, verb: str, args: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
        """Over the files."""
        number, answers = self._conversation.open()
        self._write(json.dumps({"id": number, "do": verb, "args": args}))
        return self._conversation.collect(number, answers, timeout)

    def close(self) -> None:
        """Tell the target that it may go."""
        with suppress(OSError):
            self._write(json.dumps({"bye": 1}))
        self._closed.set()

    def _write(self, line: str) -> None:
        with self._lock, self._requests.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _hear(self) -> None:
        for line in follow(self._answers, self._closed.is_set):
            self._conversation.heard(line)
        self._conversation.broken("the check is over")


def follow(path: Path, is_over: Callable[[], bool]) -> Iterator[str]:
    """Whole lines as they are added. Opened anew each time: a network file system then looks at the server's copy."""
    at = 0
    while not is_over():
        data = b""
        with suppress(OSError), path.open("rb") as file:
            file.seek(at)
            data = file.read()
        end = data.rfind(b"\n") + 1
        at += end
        yield from data[:end].decode("utf-8", "replace").splitlines()
        if not end:
            time.sleep(_POLL_S)


@dataclass(frozen=True, slots=True, order=True)
class Here:
    """A rank that is in the folder; `name` is unique. The lowest leads."""

    rank: int
    name: str
    host: str
    size: int


class Presence:
    """This process in the folder: it is seen by the others, and answers whoever leads. Raises OSError if the folder cannot be used."""

    def __init__(self, folder: Path, seat: Seat, name: str) -> None:
        self.folder, self.name = folder, name
        self.dismissed = threading.Event()  # whoever led said good-bye
        self._gone = threading.Event()
        self._leads = False
        self._here = folder / f"{name}.here"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Whole or not at all: another may look at any moment.
        draft = folder / f".{name}"
        told = {"rank": seat.rank, "host": socket.gethostname(), "size": seat.size}
        draft.write_text(json.dumps(told), encoding="utf-8")
        draft.replace(self._here)
        self._answers = (folder / f"{name}.from").open("a", encoding="utf-8", buffering=1)
        threading.Thread(target=self._beat, daemon=True).start()
        threading.Thread(target=self._serve, daemon=True).start()

    def others(self) -> list[Here]:
        """Everybody who is here and alive, this process included, the lowest rank first."""
        now = self._now()
        found = []
        for path in self.folder.glob("*.here"):
            with suppress(OSError, ValueError, KeyError):
                if now - path.stat().st_mtime < _STALE_S:
                    told = json.loads(path.read_text(encoding="utf-8"))
                    found.append(Here(int(told["rank"]), path.stem, str(told["host"]), int(told["size"])))
        return sorted(found)

    def has_leader(self) -> bool:
        """Whether somebody else leads and is alive."""
        try:
            return not self._leads and self._now() - (self.folder / "leader").stat().st_mtime < _STALE_S
        except OSError:
            return False

    def claim(self) -> bool:
        """Take the lead, unless somebody living has it."""
        leader = self.folder / "leader"
        if not self.has_leader():
            with suppress(OSError):  # left by a check that was killed
                if self._now() - leader.stat().st_mtime >= _STALE_S:
                    leader.unlink(missing_ok=True)
        try:
            os.close(os.open(leader, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        self._leads = True
        return True

    def leave(self, asked: list[str]) -> None:
        """Put away what is ours; who leads first lets those go that it asked."""
        if self._leads:
            until = time.monotonic() + _LEAVING_S
            while any((self.folder / f"{name}.here").exists() for name in asked) and time.monotonic() < until:
                time.sleep(_POLL_S)
            (self.folder / "leader").unlink(missing_ok=True)
        self._gone.set()
        self._answers.close()
        for suffix in ("here", "to", "from"):
            with suppress(OSError):
                (self.folder / f"{self.name}.{suffix}").unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _now(self) -> float:
        """The folder's own clock, by the sign that is touched there: hosts may differ."""
        with suppress(OSError):
            os.utime(self._here)
            return self._here.stat().st_mtime
        return 0.0

    def _beat(self) -> None:
        while not self._gone.wait(_BEAT_S):
            for path in [self._here, *([self.folder / "leader"] if self._leads else [])]:
                with suppress(OSError):
                    os.utime(path)

    def _serve(self) -> None:
        def requests() -> Iterator[str]:
            for line in follow(self.folder / f"{self.name}.to", self._gone.is_set):
                if '"bye"' in line:
                    self.dismissed.set()
                    return
                yield line

        with suppress(ValueError, OSError):  # closed while an answer was under way
            serve.serve(requests(), lambda line: print(line, end="", file=self._answers))
