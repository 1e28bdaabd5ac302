"""Ranks meet in a folder that all can write: the first to come leads, the others answer through files.

leader                the leader's sign of life, touched every second
NAME.here             a party: `{"rank": 3, "host": "node1"}`
NAME.to, NAME.from    requests to it, answers of it, one JSON object a line
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from phalanx.check.agent import serve
from phalanx.check.channels import Conversation
from phalanx.check.meeting.seat import Seat
from phalanx.check.parties import Party, this_machine

_POLL_S = 0.03
_BEAT_S = 1.0
_STALE_S = 10.0
_LONGEST_S = 600.0


class FolderChannel:
    """A party that reads its requests from a file and writes its answers to another."""

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
        """Tell the party that it may go."""
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


def attend(folder: Path, seat: Seat) -> bool:
    """Come as a party and answer until the leader says good-bye. False if this process is to lead."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _lead(folder):
        return False
    name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    here = folder / f"{name}.here"
    # Whole or not at all: the leader may look at any moment.
    draft = folder / f".{name}"
    draft.write_text(json.dumps({"rank": seat.rank, "host": socket.gethostname()}), encoding="utf-8")
    draft.replace(here)
    until = time.monotonic() + _LONGEST_S
    dismissed = threading.Event()

    def is_over() -> bool:
        return dismissed.is_set() or time.monotonic() > until or not _is_alive(folder, here)

    def requests() -> Iterator[str]:
        for line in follow(folder / f"{name}.to", is_over):
            if '"bye"' in line:
                dismissed.set()
                return
            yield line

    with (folder / f"{name}.from").open("a", encoding="utf-8", buffering=1) as answers:
        serve.serve(requests(), lambda line: print(line, end="", file=answers))
    for suffix in ("here", "to", "from"):
        (folder / f"{name}.{suffix}").unlink(missing_ok=True)
    return True


def _lead(folder: Path) -> bool:
    """Take the lead, if nobody living has it."""
    leader = folder / "leader"
    for _ in range(2):
        try:
            os.close(os.open(leader, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return True
        except FileExistsError:
            probe = folder / f".now-{uuid.uuid4().hex[:6]}"
            probe.touch()  # the folder's own clock: hosts may differ
            try:
                if probe.stat().st_mtime - leader.stat().st_mtime < _STALE_S:
                    return False
                leader.unlink(missing_ok=True)  # left by a check that was killed
            except FileNotFoundError:
                continue
            finally:
                probe.unlink(missing_ok=True)
    return False


def _is_alive(folder: Path, here: Path) -> bool:
    """Whether somebody still leads; the own sign is touched, so that both times are of one clock."""
    try:
        os.utime(here)
        return here.stat().st_mtime - (folder / "leader").stat().st_mtime < _STALE_S
    except OSError:
        return False


@contextmanager
def leading(folder: Path, seat: Seat, patience: float, say: Callable[[str], None]) -> Iterator[list[Party]]:
    """The parties that came, this process among them; everything is put away afterwards."""
    over = threading.Event()
    threading.Thread(target=_beat, args=(folder / "leader", over), daemon=True).start()
    began = time.monotonic()
    found: dict[str, Party] = {}
    try:
        while len(found) < seat.size - 1 and time.monotonic() - began < patience:
            for here in sorted(folder.glob("*.here")):
                if here.stem not in found:
                    told = json.loads(here.read_text(encoding="utf-8"))
                    found[here.stem] = Party(
                        "", str(told["host"]), (int(told["rank"]),), FolderChannel(folder, here.stem)
                    )
            say(f"{len(found) + 1} of {seat.size} ranks are here")
            time.sleep(_POLL_S)
        me = this_machine(socket.gethostname())
        yield [me.renamed("", me.host, (seat.rank,)), *sorted(found.values(), key=lambda party: party.ranks)]
    finally:
        for party in found.values():
            party.close()
        _wait_until_gone(folder)
        over.set()
        (folder / "leader").unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()


def _beat(leader: Path, over: threading.Event) -> None:
    while not over.wait(_BEAT_S):
        with suppress(OSError):
            os.utime(leader)


def _wait_until_gone(folder: Path) -> None:
    until = time.monotonic() + 3.0
    while any(folder.glob("*.here")) and time.monotonic() < until:
        time.sleep(_POLL_S)
