"""Brings the ranks of a launcher together by every way at once, so that the meeting does not depend on what the check tests.

Each rank shows itself in a folder that they may share. Where that does not bring all of them together, rank 0 also listens where the job would
meet, and the others look for it there. The lowest rank leads as soon as all are here, or when nobody more comes.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from phalanx.preflight.meeting.folder import FolderChannel, Here, Presence
from phalanx.preflight.meeting.seat import Seat
from phalanx.preflight.meeting.store import Reception, Visitor
from phalanx.preflight.parties import Party, this_machine

_POLL_S = 0.03
_FOLDER_ALONE_S = 0.5  # before the network is tried too
_QUIET_S = 4.0  # without a newcomer, when some are here
_LONELY_S = 8.0  # when nobody else is
_SLACK = 3.0  # times the spread of the arrivals, and the time that this process took to start


@dataclass(slots=True)
class Gathering:
    """What came of it for this rank: it leads these parties, or another rank does."""

    leads: bool
    parties: list[Party] = field(default_factory=list)
    waited: float = 0.0
    size: int = 0  # by what most were told


class Gatherer:
    """One rank that looks for the others."""

    def __init__(self, seat: Seat, folder: Path | None, by_network: bool, wait: float) -> None:
        self._seat, self._wait = seat, wait
        self._name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self._by_network = by_network and seat.store is not None
        self._presence = Presence(folder, seat, self._name) if folder is not None else None
        self._reception: Reception | None = None
        self._visitor: Visitor | None = None
        self._asked: list[str] = []

    def gather(self, say: Callable[[str], None]) -> Gathering:
        """Wait until all are here, nobody more comes, or another rank has led the check."""
        began = arrived = time.monotonic()
        known: set[str] = set()
        while True:
            now = time.monotonic()
            if self._is_dismissed():
                return Gathering(leads=False)
            here = self._presence.others() if self._presence is not None else []
            names = {self._name, *(one.name for one in here), *(self._reception.parties if self._reception else ())}
            if names - known:
                known |= names
                arrived = now
            sizes = [self._seat.size, *(one.size for one in here), *self._sizes_told()]
            say(f"{len(names)} of {max(sizes)} ranks are here")
            if self._is_led():
                pass  # answered by threads of their own
            elif len(names) >= max(sizes) or now > self._until(began, arrived, len(names)):
                if (led := self._lead(here, now - began, sizes)) is not None:
                    return led
            elif now - began > _FOLDER_ALONE_S:
                self._try_network()
            time.sleep(_POLL_S)

    def close(self) -> None:
        """Let everybody go, and put everything away."""
        for one in (self._reception, self._visitor):
            if one is not None:
                one.close()
        if self._presence is not None:
            self._presence.leave(self._asked)

    def _until(self, began: float, arrived: float, count: int) -> float:
        """When to go on without the missing: patience grows with how slowly ranks come."""
        if count == 1:
            return began + min(self._wait, max(_LONELY_S, _SLACK * _age()))
        spread = arrived - began
        return min(began + self._wait, arrived + max(_QUIET_S, _SLACK * spread, _SLACK * _age()))

    def _is_dismissed(self) -> bool:
        return any(one is not None and one.dismissed.is_set() for one in (self._presence, self._visitor))

    def _is_led(self) -> bool:
        """Whether another rank leads; its probes want the store's port free."""
        if self._presence is not None and self._presence.has_leader():
            for one in (self._reception, self._visitor):
                if one is not None:
                    one.close()
            return True
        return self._visitor is not None and self._visitor.is_served

    def _ranks(self, number: int) -> tuple[int, ...]:
        """A node's number is no rank."""
        return () if self._seat.is_node else (number,)

    def _sizes_told(self) -> list[int]:
        return list(self._reception.sizes.values()) if self._reception else []

    def _try_network(self) -> None:
        if not self._by_network:
            return
        if self._seat.rank != 0:
            self._visitor = self._visitor or Visitor(self._seat, self._name, self._wait)
        elif self._reception is None:
            self._by_network = False
            with suppress(OSError):  # no port: the facts say who has it
                self._reception = Reception(self._seat)

    def _lead(self, here: list[Here], waited: float, sizes: list[int]) -> Gathering | None:
        """Lead those who are here; None if another one is to do it."""
        if self._presence is not None and here and here[0].name != self._name:
            return None
        if self._presence is not None and not self._presence.claim():
            return None
        for way in (self._reception, self._visitor):
            if way is not None:
                way.close()
        me = this_machine(socket.gethostname())
        parties = [me.renamed("", me.host, self._ranks(self._seat.rank))]
        others = [one for one in here if one.name != self._name]
        if self._presence is not None:
            self._asked = [one.name for one in others]
            folder = self._presence.folder
            parties += [Party("", one.host, self._ranks(one.rank), FolderChannel(folder, one.name)) for one in others]
        seen = {one.name for one in here}
        if self._reception is not None:
            parties += [party for name, party in self._reception.parties.items() if name not in seen]
        parties[1:] = sorted(parties[1:], key=lambda party: party.ranks)
        return Gathering(True, parties, waited, max(set(sizes), key=lambda size: (sizes.count(size), size)))


def _age() -> float:
    """Seconds since this process was started: on a busy host or a slow file system ranks take long to come."""
    try:
        ticks = float(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        began = ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, up - began - (time.monotonic() - _LOADED))


_LOADED = time.monotonic()
