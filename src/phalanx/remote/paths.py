"""Between nodes: which host is off or cut off, by who says nothing any more and where data is not acknowledged.

A node's agent sees the connections of its own ranks only, and of their far ends the address. The driver sees all nodes: where the broken paths
meet, and whose agent, which speaks every second, has fallen silent. A silent host that another node still reaches is not lost: only the way
between it and some of the others is.
"""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from phalanx.model.fact import Fact
from phalanx.model.facts import make_fact, sentence_of
from phalanx.remote.lines import Line

SILENT_S = 5.0  # an agent speaks every second
_KIND = "network"
_REACH_S = 1.5
_NOBODYS_PORT = 9  # whether it is refused or accepted: who answers is there


def reached(addresses: Iterable[str], seconds: float = _REACH_S) -> list[str]:
    """The addresses that answer a call in any way. Silence proves nothing: a firewall may drop what it does not know."""
    selector = selectors.DefaultSelector()
    found: list[str] = []
    for address in dict.fromkeys(addresses):
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            number = sock.connect_ex((address, _NOBODYS_PORT))
        except OSError:  # a name that does not resolve
            number = errno.EINVAL
        if number in (0, errno.EINPROGRESS, errno.ECONNREFUSED):
            selector.register(sock, selectors.EVENT_WRITE, address)
        else:
            sock.close()
    end = time.monotonic() + seconds
    while selector.get_map() and (left := end - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            sock = key.fileobj  # type: ignore[assignment]
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in (0, errno.ECONNREFUSED):
                found.append(key.data)
            selector.unregister(sock)
            sock.close()
    for key in list(selector.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]
    selector.close()
    return found


class Paths:
    """What is known of one attempt."""

    def __init__(self) -> None:
        self._ends: dict[int, set[str]] = {}  # by node, the addresses from which its ranks get no answer
        self._reached: dict[int, set[str]] = {}  # by node, the addresses that answered it when it stood still
        self._broken: set[frozenset[int]] = set()  # pairs of nodes

    def told(self, line: Line, addresses: Iterable[Any]) -> None:
        """A node's ranks get no answer from these addresses."""
        if line.node is not None:
            self._ends.setdefault(line.node, set()).update(map(str, addresses))

    def reached(self, node: int, addresses: Iterable[Any]) -> None:
        """Whom a node reached when it stood still."""
        self._reached[node] = set(map(str, addresses))

    def conclude(self, by_node: Mapping[int, Line], silent: Collection[int], now: float) -> list[dict[str, Any]]:
        """What follows for hosts, as observations: who is lost, or, where nobody stands out, which path is."""
        owners = {line.address: node for node, line in by_node.items()}
        ends = [(node, owners.get(address)) for node, found in self._ends.items() for address in found]
        self._broken = {
            frozenset((node, other)) for node, other in ends if other is not None and other != node and node in by_node
        }
        alive = {node for node in silent if any(by_node[node].address in found for found in self._reached.values())}
        for node in alive:  # somebody reaches it: what is broken is its way to those that do not
            beside = [
                other
                for other, found in self._reached.items()
                if other in by_node and by_node[node].address not in found
            ]
            self._broken |= {frozenset((node, other)) for other in beside if other != node and other not in silent}
        lost = _lost_by_silence(by_node, set(silent) - alive) if not alive else []
        lost = lost or self._lost_by_paths(by_node)
        if lost:
            return [self._of_host(node, by_node, silent, now) for node in lost]
        found = []
        for pair in sorted(tuple(sorted(pair)) for pair in self._broken):
            one, other = (by_node[node] for node in pair)
            both = {"one": one.host, "ranks_one": one.ranks, "other": other.host, "ranks_other": other.ranks}
            found.append(_observation(make_fact("network.path-broken", both, ranks=(*one.ranks, *other.ranks))))
        return found

    def _of_host(self, node: int, by_node: Mapping[int, Line], silent: Collection[int], now: float) -> dict[str, Any]:
        line = by_node[node]
        others = sorted(by_node[other].host for pair in self._broken if node in pair for other in pair - {node})
        facts = []
        if node in silent:
            facts.append(f"its agent, which speaks every second, has said nothing for {now - line.heard:.0f} s")
        elif silent:
            facts.append(f"the agents of all others have fallen silent, as seen from {line.host}")
        if others:
            facts.append(f"data between it and {', '.join(others)} is not acknowledged")
        fields = {"host": line.host, "why": " and ".join(facts)}
        return _observation(make_fact("network.host-lost", fields, ranks=tuple(line.ranks), hosts=(line.host,)))

    def _lost_by_paths(self, by_node: Mapping[int, Line]) -> list[int]:
        """The node at which all of several broken paths end."""
        if len(self._broken) < 2:
            return []
        return sorted(frozenset.intersection(*self._broken) & set(by_node))


def _lost_by_silence(by_node: Mapping[int, Line], silent: Collection[int]) -> list[int]:
    """Whoever is silent; but if one alone still speaks among three or more, it is this one that is cut off, with the driver beside it."""
    speaking = [node for node in by_node if node not in silent]
    if len(by_node) > 2 and len(speaking) == 1:
        return speaking
    return sorted(silent) if speaking else []


def _observation(fact: Fact) -> dict[str, Any]:
    shown = {"text": sentence_of(fact), "facts": {}, "shown": [fact.to_json()]}
    return {"what": _KIND, "ranks": list(fact.ranks), **shown}
