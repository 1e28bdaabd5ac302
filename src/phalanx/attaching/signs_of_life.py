"""Signs that a job gets on although its stacks look alike at every look: bytes between its ranks, and step lines in its output.

Ranks whose script spends nearly all its time in one collective are found in it whenever one looks, and a script that stands at the top level
of its file has no variables that py-spy shows.
"""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from phalanx.run.watch.output_progress import OutputProgress
from phalanx.run.watch.traffic import all_sockets, sockets_of

_BEFORE, _NEW = 8 << 10, 64 << 10  # bytes of an output that are read


@dataclass(frozen=True, slots=True)
class Link:
    """A TCP connection of a rank. Which other rank is at its end is known once all machines' links are there."""

    rank: int
    local: str
    peer: str
    idle: float  # seconds since anything was sent or received
    count: int  # bytes of both directions


def links_of(pids: Mapping[int, int]) -> tuple[Link, ...]:
    """All connections of these ranks; none where the kernel does not tell."""
    try:
        now = {one.inode: one for one in all_sockets()}
    except OSError:
        return ()
    return tuple(
        Link(rank, _end(one.local), _end(one.peer), one.idle, one.count)
        for rank, pid in pids.items()
        for inode in sorted(sockets_of(pid))
        if (one := now.get(inode)) is not None
    )


def between(links: Iterable[Link]) -> list[Link]:
    """Those with different ranks at both ends."""
    known = list(links)
    owners = {link.local: link.rank for link in known}
    return [link for link in known if owners.get(link.peer, link.rank) != link.rank]


def quiet_of(links: Iterable[Link]) -> float | None:
    """Seconds since any rank got data from another one; None where they have no such connection, or the kernel does not say.
    What does not pass a socket (shared memory, InfiniBand) is not seen."""
    return min((link.idle for link in between(links)), default=None)


def growth(before: Iterable[Link], after: Iterable[Link]) -> int:
    """Bytes that went between ranks."""
    counts = {(link.local, link.peer): link.count for link in between(before)}
    return sum(link.count - counts.get((link.local, link.peer), link.count) for link in between(after))


def _end(end: tuple[bytes, int]) -> str:
    family = socket.AF_INET if len(end[0]) == 4 else socket.AF_INET6
    return f"{socket.inet_ntop(family, end[0])}:{end[1]}"


class Outputs:
    """The files that ranks print to, from one moment on."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._files: dict[tuple[int, int], tuple[Path, int]] = {}
        for pid in pids:
            for stream in (1, 2):
                path = Path(f"/proc/{pid}/fd/{stream}")
                try:
                    told = path.stat()
                except OSError:
                    continue
                if stat.S_ISREG(told.st_mode):
                    self._files.setdefault((told.st_dev, told.st_ino), (path, told.st_size))

    def steps(self) -> int:
        """How many steps further the lines are that came since."""
        return sum(_steps(path, size) for path, size in self._files.values())


def _steps(path: Path, size: int) -> int:
    """A step that was told before is none further, so what stood there before is read first."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size <= size:
                return 0
            file.seek(max(size - _BEFORE, 0))
            old, new = file.read(min(size, _BEFORE)), file.read(_NEW)
    except OSError:
        return 0
    progress = OutputProgress()
    for data in (old, new):
        known = progress.advances
        for line in data.splitlines()[-30:]:
            progress.line(line)
        progress.digest(time.monotonic())
    return progress.advances - known
