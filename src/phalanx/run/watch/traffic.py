"""Counts what processes send and receive over TCP, by the kernel's socket diagnosis: a rank that downloads is at work.

/proc/PID/io knows reads and writes of files only. What ranks say to one another is left out: Horovod's never stop talking, and
wait all the same. What a rank and its own helpers say to one another counts: a server of its data may be among them. Asked for while nothing else moves, and where the kernel does not answer (a sandbox, a network of its own)
nothing is known.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SOCK_DIAG, _BY_FAMILY, _DUMP, _DONE, _ERROR = 4, 20, 0x301, 3, 2
_INFO = 2  # the attribute with the kernel's struct tcp_info
_ALL_STATES = 0xFFFFFFFF
_MESSAGE = 72  # bytes of struct inet_diag_msg, at whose end the inode stands
_ENDS = struct.Struct("!HH16s16s")  # ports and addresses of both ends, in it:
_ENDS_AT = 4
_MAPPED = bytes(10) + b"\xff\xff"  # before an address of version 4 in one of version 6
_COUNTED = struct.Struct("=QQ")  # bytes_acked and bytes_received within tcp_info:
_COUNTED_AT = 120
_LAST_SENT_AT, _LAST_RECEIVED_AT = 44, 52  # milliseconds since then, within tcp_info
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")


@dataclass(frozen=True, slots=True)
class Socket:
    """A TCP connection and the bytes that went through it."""

    inode: str
    local: tuple[bytes, int]
    peer: tuple[bytes, int]
    count: int
    idle: float = 0.0  # seconds since anything was sent or received


class Traffic:
    """Bytes that went through the sockets of processes, as counters that only grow, also when a connection is closed."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._totals: dict[int, int] = {}

    def note(self, families: Mapping[int, Sequence[int]]) -> dict[int, int] | None:
        """By first process, of it and the others of its family; None where the kernel does not tell."""
        try:
            now = {one.inode: one for one in all_sockets()}
        except OSError:
            return None
        owned = {
            first: {inode for pid in (first, *family) for inode in sockets_of(pid)} & now.keys()
            for first, family in families.items()
        }
        ends = {now[inode].local: first for first, inodes in owned.items() for inode in inodes}
        for first, inodes in owned.items():
            outside = (now[inode] for inode in inodes if ends.get(now[inode].peer, first) == first)
            more = sum(max(one.count - self._seen.get(one.inode, 0), 0) for one in outside)
            self._totals[first] = self._totals.get(first, 0) + more
        self._seen = {one.inode: one.count for one in now.values()}
        return dict(self._totals)


def all_sockets() -> Iterator[Socket]:
    """Every TCP socket, with the bytes that it sent and were acknowledged, and those that it received."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as line:
        line.settimeout(0.5)
        for family in (socket.AF_INET, socket.AF_INET6):
            request = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _ALL_STATES)
            line.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _DUMP, 0, 0) + request)
            yield from _answers(line)


def _answers(line: socket.socket) -> Iterator[Socket]:
    while True:
        data = line.recv(1 << 16)
        while len(data) >= _HEADER.size:
            length, kind, *_ = _HEADER.unpack_from(data)
            if kind == _DONE or length < _HEADER.size:
                return
            if kind == _ERROR:
                raise OSError(errno.ENOTSUP, "no socket diagnosis")
            if (found := _read(data[_HEADER.size : length])) is not None:
                yield found
            data = data[(length + 3) & ~3 :]


def _read(message: bytes) -> Socket | None:
    (inode,) = struct.unpack_from("=I", message, _MESSAGE - 4)
    own, other, source, target = _ENDS.unpack_from(message, _ENDS_AT)
    is_version_4 = message[0] == socket.AF_INET
    rest = message[_MESSAGE:]
    while len(rest) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(rest)
        if kind == _INFO and length >= _ATTRIBUTE.size + _COUNTED_AT + _COUNTED.size:
            count = sum(_COUNTED.unpack_from(rest, _ATTRIBUTE.size + _COUNTED_AT))
            start = _ATTRIBUTE.size
            sent, received = (
                struct.unpack_from("=I", rest, start + at)[0] for at in (_LAST_SENT_AT, _LAST_RECEIVED_AT)
            )
            ends = (_address(source, is_version_4), own), (_address(target, is_version_4), other)
            return Socket(str(inode), *ends, count, min(sent, received) / 1000)
        if length < _ATTRIBUTE.size:
            break
        rest = rest[(length + 3) & ~3 :]
    return None


def _address(packed: bytes, is_version_4: bool) -> bytes:
    """The same for both ends, whichever version each of them speaks."""
    if is_version_4:
        return packed[:4]
    return packed[12:] if packed.startswith(_MAPPED) else packed


def sockets_of(pid: int) -> frozenset[str]:
    """The inodes of a process' sockets; none if it may not be seen."""
    found = set()
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                try:
                    target = str(Path(entry.path).readlink())
                except OSError:
                    continue
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    except OSError:
        pass
    return frozenset(found)
