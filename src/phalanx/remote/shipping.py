"""What an agent writes goes to the driver: output and exits at once, other files when they are whole."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from phalanx.model import bundle as layout
from phalanx.remote.link import MOST_PAYLOAD, Link
from phalanx.remote.worker import EXCEPTION, RESULT
from phalanx.run.bundle import BundleWriter
from phalanx.run.fold import Said
from phalanx.run.observer import Observation
from phalanx.run.screen import Screen
from phalanx.sources.secrets import HIDDEN

_LARGEST = 64 << 20  # bytes of evidence that is read whole to look for secrets
PROJECT = "project"  # the folder below an agent's own in which the user's files are
_NOT_SENT = {layout.HEARTBEAT}  # lives in memory that the rank writes to; the watch has read it


class ShippingWriter(BundleWriter):
    """The part of a bundle that one node writes. A broken line is the driver's end, which the agent sees elsewhere."""

    def __init__(self, folder: Path, link: Link, secrets: Iterable[str], is_alone: bool, root: str = "") -> None:
        super().__init__(folder, lambda text: self._send("say", text=text))
        self._link = link
        # Output comes by line: of a key of several lines each is a secret.
        parts = dict.fromkeys(part for value in secrets for part in (value, *value.splitlines()) if len(part) >= 4)
        self._replaced = [(part.encode(), HIDDEN.encode()) for part in parts]
        if root:  # people know their files by where they are at home, and lines of several nodes are the same
            self._replaced.append((str(folder / PROJECT).encode(), root.rstrip("/").encode()))
        self._is_alone = is_alone
        self._sent: dict[Path, tuple[int, int]] = {}

    def open_output(self, attempt: Path, number: int, rank: int) -> None:
        """Nothing: output is not kept on the node."""

    def write_output(self, number: int, rank: int, data: bytes, is_error: bool = False) -> None:
        """To the driver, without the values of the job's secrets."""
        view = memoryview(self._cleaned(data))
        for start in range(0, len(view), MOST_PAYLOAD):
            self._send("output", view[start : start + MOST_PAYLOAD], rank=rank, error=is_error)

    def write_exit(self, attempt: Path, rank: int, facts: Mapping[str, Any]) -> None:
        """To the driver, which numbers the exits of all nodes."""
        self._send("exit", **facts)

    def write_observation(self, attempt: Path, seen: Observation) -> None:
        """To the driver. Where there are other nodes, this one cannot tell who is to blame for a stall."""
        ranks, text, data, facts = list(seen.ranks), seen.text, dict(seen.data), seen.facts
        if seen.kind == "stall" and not self._is_alone:
            ranks, data["missing"], facts = [], [], ()
            text = f"nothing has moved on this node for {data.get('quiet_s', 0):.0f} s"
        self._send(
            "observation", what=seen.kind, ranks=ranks, text=text, facts=data, shown=[fact.to_json() for fact in facts]
        )

    def send_files(self, attempt: Path, wants: Callable[[Path], bool] = lambda path: True) -> None:
        """Every file of the attempt that is new or has changed."""
        for path in sorted(attempt.rglob("*")):
            if path.name in _NOT_SENT or path.name.startswith(".") or not path.is_file() or not wants(path):
                continue
            state = path.stat()
            if self._sent.get(path) != (state.st_size, state.st_mtime_ns):
                self._sent[path] = (state.st_size, state.st_mtime_ns)
                self._send_file(path)

    def _send_file(self, path: Path) -> None:
        name = path.relative_to(self.folder).as_posix()
        with contextlib.suppress(FileNotFoundError), self._open(path) as file:
            buffer = bytearray(MOST_PAYLOAD)
            offset = 0
            while count := file.readinto(buffer):
                self._send("file", memoryview(buffer)[:count], path=name, offset=offset)
                offset += count
            self._send("file", path=name, offset=offset, last=True)

    def _open(self, path: Path) -> io.BufferedIOBase:
        """A file for reading; evidence without the values of the job's secrets."""
        if not self._replaced or path.name in (RESULT, EXCEPTION) or path.stat().st_size > _LARGEST:
            return path.open("rb")
        return io.BytesIO(self._cleaned(path.read_bytes()))

    def _cleaned(self, data: bytes) -> bytes:
        for value, shown in self._replaced:
            if value in data:
                data = data.replace(value, shown)
        return data

    def _send(self, kind: str, payload: bytes | memoryview = b"", /, **data: Any) -> None:
        with contextlib.suppress(OSError):
            self._link.send(kind, payload, **data)


class NoScreen(Screen):
    """An agent shows nothing: the driver does, from what it is sent."""

    shows = False

    def __init__(self) -> None:
        super().__init__(only_errors=True)
        self.has_status = False

    def show(self, lines: list[Said], is_alone: bool) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing; what matters is sent as an observation."""

    def say_block(self, text: str) -> None:
        """Nothing."""


def environment_without_ours(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What ranks inherit: not the agent's own affairs."""
    return {name: value for name, value in variables.items() if not name.startswith("PHALANX_")}
