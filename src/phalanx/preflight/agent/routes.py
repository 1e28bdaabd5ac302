"""The verb `routes`: which way the kernel would send packets from one address to another, with and without the rules that look at the source."""

from __future__ import annotations

import socket
import struct

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_GET_RULE = 34
_SOURCE, _PRIORITY, _TABLE = 2, 6, 15  # attributes of a rule


def routes(args: dict[str, Any], emit: Callable[[Any], None]) -> None:
    """For each pair of an own address and another: the way by the source's rules, the way without, and those rules."""
    for source, target in args["pairs"]:
        emit(
            {
                "target": target,
                "way": kernel.route_to(target, source),
                "plain": kernel.route_to(target),
                "rules": rules_of(source),
            }
        )


def rules_of(source: str) -> list[dict[str, Any]]:
    """The rules of policy routing that ask for a source with this address in it."""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    found = []
    try:
        answers = kernel.ask(_GET_RULE, struct.pack("=BBBBBBBBI", family, 0, 0, 0, 0, 0, 0, 0, 0), 0x301)
    except (OSError, struct.error):
        return []
    for _, data in answers:
        attributes = dict(kernel.attributes(data[12:]))
        length = data[2]
        if length and _SOURCE in attributes and _is_in(source, attributes[_SOURCE], length):
            table = struct.unpack("=I", attributes[_TABLE])[0] if _TABLE in attributes else data[4]
            priority = struct.unpack("=I", attributes[_PRIORITY])[0] if _PRIORITY in attributes else 0
            text = "%s/%d" % (socket.inet_ntop(family, attributes[_SOURCE]), length)
            found.append({"from": text, "table": table, "priority": priority})
    return found


def _is_in(address: str, network: bytes, length: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    raw = socket.inet_pton(family, address)
    shift = len(raw) * 8 - length
    return int.from_bytes(raw, "big") >> shift == int.from_bytes(network, "big") >> shift


VERBS = {"routes": routes}
