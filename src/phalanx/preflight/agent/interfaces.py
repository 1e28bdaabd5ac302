"""Sections `interfaces` and `routes`, asked of the kernel itself: in a container /sys may show another network than ours.

{"eth0": {"index": 2, "up": true, "running": true, "loopback": false, "mtu": 1500, "mac": "02:…", "addresses": ["10.0.0.3/24", "fe80::1/64"]}}
"""

from __future__ import annotations

import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .collect import Setting

_GET_LINK, _GET_ADDRESS = 18, 22
_NEW_LINK, _NEW_ADDRESS, _ERROR, _DONE = 16, 20, 2, 3
_REQUEST, _DUMP = 0x1, 0x300
_HEAD = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_UP, _LOOPBACK, _RUNNING = 0x1, 0x8, 0x40
_DEPRECATED, _TENTATIVE, _FAILED = 0x20, 0x40, 0x08


def interfaces(setting: Setting) -> dict[str, Any]:
    """Every interface with its addresses, in the kernel's order."""
    found: dict[int, dict[str, Any]] = {}
    for kind, body in _dump(_GET_LINK):
        if kind == _NEW_LINK:
            _family, _type, index, flags, _change = _LINK.unpack_from(body)
            parts = dict(_attributes(body[_LINK.size :]))
            found[index] = {
                "name": parts.get(3, b"").rstrip(b"\0").decode("ascii", "replace"),
                "index": index,
                "up": bool(flags & _UP),
                "running": bool(flags & _RUNNING),
                "loopback": bool(flags & _LOOPBACK),
                "mtu": struct.unpack("=I", parts[4])[0] if len(parts.get(4, b"")) == 4 else None,
                "mac": ":".join("%02x" % byte for byte in parts.get(1, b"")),
                "addresses": [],
            }
    for kind, body in _dump(_GET_ADDRESS):
        if kind == _NEW_ADDRESS:
            family, length, flags, _scope, index = _ADDRESS.unpack_from(body)
            parts = dict(_attributes(body[_ADDRESS.size :]))
            raw = parts.get(2) or parts.get(1)  # the own end of the link, where it has two
            if raw is None or index not in found or flags & _FAILED:
                continue
            form = socket.AF_INET if family == socket.AF_INET else socket.AF_INET6
            found[index]["addresses"].append("%s/%d" % (socket.inet_ntop(form, raw), length))
    return {facts.pop("name"): facts for facts in found.values()}


def _dump(what: int) -> Iterator[tuple[int, bytes]]:
    """The messages of one question to the kernel."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as asker:
        asker.settimeout(2.0)
        body = struct.pack("=BxHiII", 0, 0, 0, 0, 0)
        asker.send(_HEAD.pack(_HEAD.size + len(body), what, _REQUEST | _DUMP, 1, 0) + body)
        while True:
            data = asker.recv(1 << 20)
            while len(data) >= _HEAD.size:
                length, kind, _flags, _number, _port = _HEAD.unpack_from(data)
                if kind in (_DONE, _ERROR) or length < _HEAD.size:
                    return
                yield kind, data[_HEAD.size : length]
                data = data[(length + 3) & ~3 :]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            return
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3 :]


def routes(setting: Setting) -> dict[str, Any]:
    """The default routes, and from which address this host would speak to each of `args["targets"]`."""
    found: list[dict[str, Any]] = []
    try:
        with open("/proc/net/route", encoding="ascii") as file:
            for line in list(file)[1:]:
                name, target, gateway, flags, _, _, _, mask = line.split()[:8]
                if int(flags, 16) & 1:
                    entry = {"interface": name, "to": _dotted(target), "mask": _dotted(mask), "by": _dotted(gateway)}
                    found.append(entry)
    except (OSError, ValueError):
        pass
    return {
        "ipv4": found[:200],
        "from": {str(target): source_towards(str(target)) for target in setting.listed("targets")},
    }


def _dotted(word: str) -> str:
    return socket.inet_ntoa(struct.pack("=I", int(word, 16)))


def source_towards(target: str) -> str | None:
    """The own address that the kernel would use to speak to this one; None if it knows no way. No packet is sent."""
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asker:
            asker.connect((target, 9))
            return str(asker.getsockname()[0])
    except OSError:
        return None


FACTS = {"interfaces": interfaces, "routes": routes}
