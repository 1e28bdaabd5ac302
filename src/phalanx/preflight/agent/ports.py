"""Section `ports`: who listens where, from the kernel's own tables, and which ports it hands out by itself.

{"listening": [{"port": 29500, "address": "0.0.0.0", "pid": 4711, "command": "python train.py", "user": 1000}], "connected": [], "range": [32768, 60999],
 "taken": 12, "queue": 4096}
"""

from __future__ import annotations

import os
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .collect import Setting

_LISTENS, _TIME_WAIT = "0A", "06"
_OF_THE_JOB = ("MASTER_PORT", "PET_MASTER_PORT", "PET_RDZV_ENDPOINT")
_MOST = 400
_MOST_DESCRIPTORS = 200_000


def ports(setting: Setting) -> dict[str, Any]:
    """Listening sockets with their owners; of the job's own ports also those that are the near end of a connection."""
    wanted = [setting.environment.get(name, "").rpartition(":")[2] for name in _OF_THE_JOB]
    asked = {int(port) for port in wanted if port.isdigit()}
    rows = [*_rows("/proc/net/tcp", socket.AF_INET), *_rows("/proc/net/tcp6", socket.AF_INET6)]
    listening = [row for row in rows if row["state"] == _LISTENS]
    accepting = {row["port"] for row in listening}
    connected = [row for row in rows if row["port"] in asked - accepting and row["state"] not in (_LISTENS, _TIME_WAIT)]
    owners = _owners({row["inode"] for row in (*listening, *connected)})
    for row in (*listening, *connected):
        row.update(owners.get(row["inode"], {}))
    listening.sort(key=lambda row: (row["port"] not in asked, row["port"]))
    low, high = [*_pair("/proc/sys/net/ipv4/ip_local_port_range"), 32768, 60999][:2]
    return {
        "listening": [_shown(row) for row in listening[:_MOST]],
        "left_off": max(0, len(listening) - _MOST),
        "connected": [_shown(row) for row in connected[:_MOST]],
        "range": [low, high],
        "taken": len({row["port"] for row in rows if low <= row["port"] <= high}),
        "queue": next(iter(_pair("/proc/sys/net/core/somaxconn")), None),
        "conntrack_s": next(iter(_pair("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established")), None),
        "unprivileged_from": (_pair("/proc/sys/net/ipv4/ip_unprivileged_port_start") or [1024])[0],
        "tables_read": bool(rows) or os.path.exists("/proc/net/tcp"),
    }


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("state", "inode")}


def _rows(path: str, family: int) -> list[dict[str, Any]]:
    found = []
    try:
        with open(path, encoding="ascii") as file:
            next(file)
            for line in file:
                parts = line.split()
                address, _, port = parts[1].partition(":")
                found.append(
                    {
                        "port": int(port, 16),
                        "address": _address(address, family),
                        "state": parts[3],
                        "user": int(parts[7]),
                        "inode": parts[9],
                    }
                )
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    return found


def _address(word: str, family: int) -> str:
    """The kernel writes addresses in words of its own byte order."""
    words = [int(word[start : start + 8], 16) for start in range(0, len(word), 8)]
    return socket.inet_ntop(family, struct.pack("=%dI" % len(words), *words))


def _owners(inodes: set[str]) -> dict[str, dict[str, Any]]:
    """The process that holds each socket; without root only the user's own are seen."""
    wanted = {"socket:[%s]" % inode: inode for inode in inodes if inode != "0"}
    found: dict[str, dict[str, Any]] = {}
    seen = 0
    for pid in (name for name in os.listdir("/proc") if name.isdigit()):
        folder = "/proc/%s/fd" % pid
        try:
            descriptors = os.listdir(folder)
        except OSError:
            continue
        for descriptor in descriptors:
            seen += 1
            try:
                inode = wanted.get(os.readlink(folder + "/" + descriptor))
            except OSError:
                continue
            if inode is not None and inode not in found:
                found[inode] = {"pid": int(pid), "command": _command(pid)}
        if len(found) == len(wanted) or seen > _MOST_DESCRIPTORS:
            break
    return found


def _command(pid: str) -> str:
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as file:
            words = file.read(4000).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return words[:200]


def _pair(path: str) -> list[int]:
    try:
        with open(path, encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return []


FACTS = {"ports": ports}
