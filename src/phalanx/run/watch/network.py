"""Looks at the job's TCP connections when it stands still: unacknowledged data that is sent again tells a broken path,
silence a stuck peer. From /proc/PID/net/tcp, which is the rank's own network, and needs no program and no rights."""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.model.fact import Fact
from phalanx.model.facts import make_fact, sentence_of
from phalanx.run.observer import Observation
from phalanx.run.watch.traffic import sockets_of

_ESTABLISHED, _CONNECTING, _LISTENS = 0x01, 0x02, 0x0A
_RESENT = 2  # once may be chance
_RETRANSMITS = 1  # a kind of the kernel's timer
Tables = dict[str, dict[str, str]]  # by network, and the number of a socket: its line in the kernel's table


@dataclass(frozen=True, slots=True)
class Connection:
    """One TCP connection of a rank."""

    rank: int
    local: tuple[str, int]
    peer: tuple[str, int]
    state: int
    unacknowledged: int
    resent: int
    timer: int

    @property
    def is_broken(self) -> bool:
        """Data, or the request to connect, goes out and nothing comes back."""
        if self.state == _CONNECTING:
            return self.resent >= 1
        return (
            self.state == _ESTABLISHED
            and self.unacknowledged > 0
            and self.resent >= _RESENT
            and self.timer == _RETRANSMITS
        )


@dataclass(frozen=True, slots=True)
class NetworkView:
    """The job's connections, with those that are in trouble."""

    broken: tuple[Connection, ...]
    owners: Mapping[tuple[str, int], int]  # which rank has which end

    def facts(self) -> list[Fact]:
        """One for each broken path."""
        found: dict[str, Fact] = {}
        for one in self.broken:
            fact = self._fact(one)
            found[sentence_of(fact)] = fact
        return [found[text] for text in sorted(found)]

    def _fact(self, one: Connection) -> Fact:
        other = self.owners.get(one.peer)
        fields: dict[str, Any] = {"address": f"{one.peer[0]}:{one.peer[1]}", "times": _times(one.resent)}
        if one.state == _CONNECTING:
            return make_fact("network.no-answer", {**fields, "rank": one.rank}, ranks=(one.rank,), source="watch")
        to = f"rank {other}" if other is not None else "another host"
        fields |= {"bytes": one.unacknowledged, "sender": one.rank, "to": to}
        ends = (one.rank,) if other is None else (one.rank, other)
        return make_fact("network.not-acknowledged", fields, ranks=ends, source="watch")

    def ranks(self) -> tuple[int, ...]:
        """Who is at either end of a broken path."""
        ends = {one.rank for one in self.broken}
        ends |= {self.owners[one.peer] for one in self.broken if one.peer in self.owners}
        return tuple(sorted(ends))


def observe_network(view: NetworkView) -> list[Observation]:
    """The broken paths as one observation; nothing where there are none."""
    facts = tuple(view.facts()[:32])
    if not facts:
        return []
    told = [sentence_of(fact) for fact in facts]
    ends = sorted({one.peer[0] for one in view.broken})
    return [Observation("network", view.ranks(), "; ".join(told[:4]), {"paths": told, "ends": ends}, facts)]


def view_network(pids: Mapping[int, int]) -> NetworkView:
    """All TCP connections of the ranks as they are now."""
    tables: Tables = {}
    found = [connection for rank, pid in pids.items() for connection in connections_of(rank, pid, tables)]
    owners = {connection.local: connection.rank for connection in found}
    return NetworkView(tuple(one for one in found if one.is_broken), owners)


def connections_of(rank: int, pid: int, tables: Tables | None = None) -> Iterator[Connection]:
    """The TCP connections of one process. `tables` are read once for all processes that are asked about with them."""
    tables = {} if tables is None else tables
    try:
        network = str(Path(f"/proc/{pid}/ns/net").readlink())
    except OSError:
        network = str(pid)
    if network not in tables:
        tables[network] = dict(_lines(pid))
    own = tables[network]
    for inode in sorted(sockets_of(pid) & own.keys()):
        found = parse_line(rank, own[inode])
        if found is not None:
            yield found


def _lines(pid: int) -> Iterator[tuple[str, str]]:
    """The lines of the kernel's tables in the process's network, each with the number of its socket."""
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        yield from ((fields[9], line) for line in lines if len(fields := line.split(None, 10)) > 9)


def listening_ports(pid: int, tables: Tables | None = None) -> set[int]:
    """The TCP ports on which a process listens."""
    return {one.local[1] for one in connections_of(0, pid, tables) if one.state == _LISTENS}


def parse_line(rank: int, line: str) -> Connection | None:
    """One line of /proc/net/tcp."""
    fields = line.split()
    if len(fields) < 10:
        return None
    timer, _, _ = fields[5].partition(":")
    return Connection(
        rank,
        _address(fields[1]),
        _address(fields[2]),
        int(fields[3], 16),
        int(fields[4].partition(":")[0], 16),
        int(fields[6], 16),
        int(timer, 16),
    )


def _address(text: str) -> tuple[str, int]:
    """`0100007F:1F90` is 127.0.0.1:8080: words of four bytes in the machine's own order."""
    host, _, port = text.partition(":")
    words = struct.unpack(f">{len(host) // 8}I", bytes.fromhex(host))
    packed = struct.pack(f"{'<' if sys.byteorder == 'little' else '>'}{len(words)}I", *words)
    if len(packed) == 4:
        return socket.inet_ntop(socket.AF_INET, packed), int(port, 16)
    address = ipaddress.IPv6Address(packed)
    return str(address.ipv4_mapped or address), int(port, 16)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
