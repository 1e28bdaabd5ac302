"""Where the driver listens, and how the nodes' agents may call it: on a cluster a machine has many names, and few of them work."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import psutil

from phalanx.remote.job import StartError

_PORT = "PHALANX_DRIVER_PORT"  # at which the driver listens, where its nodes reach it through a firewall
_HOST = "PHALANX_DRIVER_HOST"  # the address at which it listens, where this machine has several
_INNER = ("docker", "virbr", "veth", "cni", "br-", "lxc", "podman")  # interfaces that end on this machine


def listen_at(host: str, listen: Callable[[str, int], int]) -> int:
    """Listen at the port that the user's firewall is open for, if there is one. Returns the port. Raises StartError."""
    wish = os.environ.get(_PORT, "0")
    if not wish.isdigit() or int(wish) > 65535:
        raise StartError(f"{_PORT}={wish}: give the number of a port")
    try:
        return listen(host, int(wish))
    except OSError as error:
        raise StartError(f"cannot listen at {host} port {wish} ({_HOST}, {_PORT}): {error.strerror}") from error


def network_host(driver: str = "") -> str:
    """Where to listen for agents on other machines: at the address that the user names, at the only one there is, or at all.

    `driver` is how nodes are told to call this machine. It may be a name outside of it, of which nobody knows where it leads in.
    """
    if wish := os.environ.get(_HOST, ""):
        return wish
    if driver:
        own = {entry.address for entries in psutil.net_if_addrs().values() for entry in entries}
        return driver if driver in own else "0.0.0.0"
    outer = [name for name in own_addresses() if _is_number(name)]
    return outer[0] if len(outer) == 1 else "0.0.0.0"


def addresses_at(host: str, port: int) -> str:
    """What an agent is told: `host:port,…`, the likeliest first."""
    names = own_addresses() if host == "0.0.0.0" else [host]
    return ",".join(f"{name}:{port}" for name in names)


def own_addresses() -> list[str]:
    """How other machines may call this one: what its name means, the name, then what its interfaces have. Many a machine's
    own name is 127.0.1.1 to itself, and nothing to others."""
    name = socket.gethostname()
    try:
        found = socket.gethostbyname_ex(name)[2]
    except OSError:
        found = []
    more = [
        entry.address
        for interface, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family == socket.AF_INET and not interface.startswith(_INNER)
    ]
    return list(dict.fromkeys([*filter(_is_outer, found), name, *filter(_is_outer, more)]))


def _is_number(address: str) -> bool:
    return address.replace(".", "").isdigit()


def _is_outer(address: str) -> bool:
    return not address.startswith(("127.", "169.254."))
