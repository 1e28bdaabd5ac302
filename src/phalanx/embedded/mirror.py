"""Files of a bundle that travel between the companions of nodes without a shared folder: who may send which, and what has changed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection
from pathlib import Path

from phalanx import private
from phalanx.embedded.folders import NODES
from phalanx.model import bundle as layout
from phalanx.remote.link import MOST_PAYLOAD, Link, LinkError
from phalanx.run.sealing import sealed

_MOST_BYTES = 1 << 30  # that one node may send
_LARGEST = 64 << 20  # of one file
_SHARED = (layout.SAMPLES,)  # every node adds its lines to it
_GROWING = (".log", ".jsonl")
_HOST = r"[\w.-]{1,255}"
# Evidence of a node's own ranks, and its own record.
BY_NODE = re.compile(
    r"attempt0/(?:rank(?P<rank>\d{1,7})/[A-Za-z0-9][\w.-]{0,80}|samples\.jsonl"
    rf"|(?:watch|kernel|devices)-(?P<host>{_HOST})\.(?:jsonl|log))|nodes/(?P<node>{_HOST})\.json"
)
TO_NODE = re.compile(rf"report\.json|nodes/(?P<node>{_HOST})\.json")


class Mirror:
    """What one node sends: everything of its own ranks that is new, and its record last, so that who reads that finds the rest."""

    def __init__(self, bundle: Path, host: str, secrets: Callable[[], Collection[str]]) -> None:
        self._bundle, self._host, self._secrets = bundle, host, secrets
        self._sent: dict[Path, tuple[int, int]] = {}
        self._place: dict[Path, int] = {}  # how far a file that grows was sent

    def send_changes(self, link: Link, ranks: Collection[int]) -> None:
        """Raises OSError when the line is broken."""
        attempt = layout.attempt_folder(self._bundle, 0)
        paths = [path for rank in sorted(ranks) for path in sorted(layout.rank_folder(attempt, rank).glob("*"))]
        paths += [path for path in sorted(attempt.glob("*")) if path.is_file()]
        paths.append(self._bundle / NODES / f"{self._host}.json")
        for path in paths:
            if BY_NODE.fullmatch(path.relative_to(self._bundle).as_posix()) and path.is_file():
                with contextlib.suppress(FileNotFoundError):
                    self._send_if_changed(link, path)

    def _send_if_changed(self, link: Link, path: Path) -> None:
        state = path.stat()
        is_changed = self._sent.get(path) != (state.st_size, state.st_mtime_ns) or path.name == layout.HEARTBEAT
        if not is_changed or state.st_size > _LARGEST:
            return
        self._sent[path] = (state.st_size, state.st_mtime_ns)
        name = path.relative_to(self._bundle).as_posix()
        start = self._place.get(path, 0) if path.suffix in _GROWING else 0
        with path.open("rb") as file:
            file.seek(start)
            data = file.read()
        if path.suffix in _GROWING:
            self._place[path] = start + len(data)
        if data or not start:
            send(link, name, sealed(path.name, data, self._secrets()), adds=start > 0 or path.name in _SHARED)


def send(link: Link, name: str, data: bytes, adds: bool = False) -> None:
    """One file, or what a file has grown by, in pieces. Raises OSError."""
    view = memoryview(data)
    for offset in range(0, max(len(data), 1), MOST_PAYLOAD):
        piece = view[offset : offset + MOST_PAYLOAD]
        link.send("file", piece, path=name, adds=adds, last=offset + len(piece) >= len(data))


def take(link: Link, bundle: Path, names: re.Pattern[str], allows: Callable[[re.Match[str]], bool]) -> None:
    """Write down what comes, until the line ends. Raises LinkError for what the other side may not send."""
    left, parts = _MOST_BYTES, dict[str, bytearray]()
    while (message := link.receive()) is not None:
        name = str(message.data.get("path"))
        match = names.fullmatch(name)
        left -= len(message.payload)
        if match is None or not allows(match) or left < 0:
            raise LinkError(f"{name!r}: not a file that it may send")
        parts.setdefault(name, bytearray()).extend(message.payload)
        if message.data.get("last"):
            with contextlib.suppress(OSError):
                write(bundle / name, bytes(parts.pop(name)), bool(message.data.get("adds")))


def write(path: Path, data: bytes, adds: bool = False) -> None:
    """A whole file at once, or more of one. Raises OSError."""
    if not path.parent.is_dir():
        private.make_folder(path.parent)
    if adds:
        with open(path, "ab", opener=private.opener) as file:
            file.write(data)
    else:
        beside = path.with_name(f".{path.name}.part")
        private.write_bytes(beside, data)
        beside.replace(path)
