"""What the kernel knows of connections, neighbours and time-outs: TCP_INFO, error queues, half-open connections, conntrack."""

from __future__ import annotations

import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TCP_INFO, _RECEIVE_ERRORS, _RECEIVE_ERRORS_6 = 11, 11, 25
_ERROR_QUEUE = 0x2000
_HEAD = struct.Struct("=IHHII")
_GET_ROUTE, _GET_NEIGHBOUR = 26, 30
_INCOMPLETE, _FAILED = 0x01, 0x20
# name: where it stands in struct tcp_info, and how it is read; all but the first two only in kernels since 4.x.
_INFO = {
    "retransmits": (2, "=B"),
    "unacked": (24, "=I"),
    "snd_mss": (16, "=I"),
    "lost": (32, "=I"),
    "rtt": (68, "=I"),
    "total_retrans": (100, "=I"),
    "min_rtt": (148, "=I"),
    "data_segs_out": (156, "=I"),
    "delivery_rate": (160, "=Q"),
    "busy_us": (168, "=Q"),
    "rwnd_limited_us": (176, "=Q"),
    "dsack_dups": (216, "=I"),
    "out_of_order": (224, "=I"),
}


def tcp_info(sock: socket.socket) -> dict[str, int]:
    """The kernel's own figures of a connection; empty where it has none."""
    try:
        raw = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 256)
    except OSError:
        return {}
    return {
        name: struct.unpack_from(form, raw, at)[0]
        for name, (at, form) in _INFO.items()
        if at + struct.calcsize(form) <= len(raw)
    }


def want_errors(sock: socket.socket) -> None:
    """Let ICMP errors be told with their sender: a reject can then be told from a reset."""
    try:
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, _RECEIVE_ERRORS_6, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, _RECEIVE_ERRORS, 1)
    except OSError:
        pass


def icmp_error(sock: socket.socket) -> dict[str, Any] | None:
    """The ICMP message that ended a connection: type, code, and which host sent it."""
    try:
        _, messages, _, _ = sock.recvmsg(1, 512, _ERROR_QUEUE)
    except (OSError, AttributeError):
        return None
    for _level, _kind, data in messages:
        if len(data) < 16:
            continue
        _number, origin, kind, code = struct.unpack_from("=IBBB", data)
        if origin not in (2, 3):
            continue
        sender = None
        if len(data) >= 24 and struct.unpack_from("=H", data, 16)[0] == socket.AF_INET:
            sender = socket.inet_ntoa(data[20:24])
        elif len(data) >= 40 and struct.unpack_from("=H", data, 16)[0] == socket.AF_INET6:
            sender = socket.inet_ntop(socket.AF_INET6, data[24:40])
        return {"type": kind, "code": code, "from": sender, "v6": origin == 3}
    return None


def half_open(ports: list[int]) -> list[dict[str, Any]]:
    """Requests to connect that arrived at these ports, and whose answer was not answered."""
    found = []
    for name in ("tcp", "tcp6"):
        for local, remote, state in _table(name):
            if state == 0x03 and local[1] in ports:
                found.append({"port": local[1], "from": remote[0]})
    return found


def _table(name: str) -> list[tuple[tuple[str, int], tuple[str, int], int]]:
    try:
        with open("/proc/net/" + name, encoding="ascii") as file:
            lines = file.readlines()[1:]
    except OSError:
        return []
    rows = []
    for line in lines:
        fields = line.split()
        rows.append((_address(fields[1]), _address(fields[2]), int(fields[3], 16)))
    return rows


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.partition(":")
    words = [int(host[at : at + 8], 16) for at in range(0, len(host), 8)]
    packed = struct.pack("=%dI" % len(words), *words)
    if len(packed) == 4:
        return socket.inet_ntoa(packed), int(port, 16)
    return plain(socket.inet_ntop(socket.AF_INET6, packed)), int(port, 16)


def plain(address: str) -> str:
    """Without the mark of an IPv4 address in IPv6's clothes, and without the interface of a link-local one."""
    address = address.partition("%")[0]
    return address[7:] if address.startswith("::ffff:") and "." in address else address


def route_to(address: str, source: str = "") -> dict[str, Any]:
    """The interface and the gateway towards an address, for what comes from a source; `{"error": number}` if the kernel knows no way."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    raw = socket.inet_pton(family, address)
    body = struct.pack("=BBBBBBBBI", family, len(raw) * 8, len(raw) * 8 if source else 0, 0, 0, 0, 0, 0, 0)
    body += struct.pack("=HH", 4 + len(raw), 1) + raw
    if source:
        body += struct.pack("=HH", 4 + len(raw), 2) + socket.inet_pton(family, source)
    found: dict[str, Any] = {}
    try:
        for kind, data in ask(_GET_ROUTE, body, 1):
            if kind == 2:
                return {"error": -struct.unpack_from("=i", data)[0]}
            for number, value in attributes(data[12:]):
                if number == 4:
                    found["interface"] = socket.if_indextoname(struct.unpack("=I", value)[0])
                elif number == 5:
                    found["gateway"] = socket.inet_ntop(family, value)
                elif number == 7:
                    found["source"] = socket.inet_ntop(family, value)
    except (OSError, ValueError, struct.error):
        pass
    return found


def neighbour_is_missing(address: str) -> bool:
    """Whether nobody on the link answers for this address, or for the gateway towards it."""
    route = route_to(address)
    hop = route.get("gateway", address)
    family = socket.AF_INET6 if ":" in hop else socket.AF_INET
    wanted = socket.inet_pton(family, hop)
    try:
        for kind, data in ask(_GET_NEIGHBOUR, struct.pack("=BxxxiHBB", family, 0, 0, 0, 0), 0x301):
            if kind != 28:
                continue
            index, state = struct.unpack_from("=iH", data, 4)
            if dict(attributes(data[12:])).get(1) != wanted:
                continue
            # Two interfaces of one network know the same neighbour, each for itself.
            if not route.get("interface") or socket.if_indextoname(index) == route["interface"]:
                return bool(state & (_INCOMPLETE | _FAILED))
    except (OSError, struct.error):
        pass
    return False


def ask(what: int, body: bytes, flags: int) -> list[tuple[int, bytes]]:
    """A question to the kernel over netlink: kind and body of each part of the answer."""
    found: list[tuple[int, bytes]] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as asker:
        asker.settimeout(1.0)
        asker.send(_HEAD.pack(_HEAD.size + len(body), what, flags, 1, 0) + body)
        while True:
            data = asker.recv(1 << 18)
            while len(data) >= _HEAD.size:
                length, kind, marks, _number, _port = _HEAD.unpack_from(data)
                if kind == 3 or length < _HEAD.size:
                    return found
                found.append((kind, data[_HEAD.size : length]))
                if kind == 2 or not marks & 2:  # an error, or an answer of one part
                    return found
                data = data[(length + 3) & ~3 :]


def attributes(data: bytes) -> list[tuple[int, bytes]]:
    """The numbered values at the end of such a part."""
    found = []
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        found.append((kind & 0x3FFF, data[4:length]))
        data = data[(length + 3) & ~3 :]
    return found


def forgetting() -> dict[str, int]:
    """After how many seconds this host's own firewall forgets an idle connection, and when the kernel would keep it alive."""
    found = {}
    for name, path in (
        ("established", "netfilter/nf_conntrack_tcp_timeout_established"),
        ("loose", "netfilter/nf_conntrack_tcp_loose"),
        ("tracked", "netfilter/nf_conntrack_count"),
        ("keepalive", "ipv4/tcp_keepalive_time"),
    ):
        try:
            with open("/proc/sys/net/" + path, encoding="ascii") as file:
                found[name] = int(file.read())
        except (OSError, ValueError):
            pass
    return found
