"""The companions of nodes that share no folder: each has a line to the one beside rank 0, sends it what its ranks leave, and hears the verdict.

Where that one listens the ranks tell each other by the job's own store (`phalanx.embedded.store`), or the user by PHALANX_MEET.
What arrives stands where a shared folder would have it, so that nobody else needs to know by which way it came.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from re import Match
from typing import Any

from phalanx.embedded import mirror
from phalanx.embedded.folders import CALLS, LISTENS, NODES
from phalanx.model import bundle as layout
from phalanx.remote.addresses import own_addresses
from phalanx.remote.link import Link, LinkError
from phalanx.sources.bundle import read_manifest

_EVERY_S, _AGAIN_S = 1.0, 5.0
_CONNECT_S, _PATIENCE_S = 3.0, 10.0
_MOST_LINES = 4096


class Meeting:
    """One for each companion; `look` begins what is called for, threads do the rest. Problems are said in the node's log."""

    def __init__(self, bundle: Path, host: str, variables: Mapping[str, str]) -> None:
        self._bundle, self._host = bundle, host
        self._given, self._token = variables.get("PHALANX_MEET", ""), variables.get("PHALANX_MEET_TOKEN", "")
        self._ranks: Collection[int] = ()
        self._links: dict[Link, str] = {}
        self._listening: socket.socket | None = None
        self._calls: threading.Thread | None = None
        self._over = threading.Event()
        self.hub: str | None = None  # the host whose companion has all evidence, once a line stands
        self.secrets: Collection[str] = ()

    def look(self, ranks: Collection[int], size: int) -> None:
        """`ranks` are those of this node. Does not block."""
        self._ranks = ranks
        if self._listening is not None or self._calls is not None or self._over.is_set() or not self._lacks_ranks(size):
            return
        if 0 in ranks:
            self._listen()
        elif (told := self._whom_to_call()) is not None:
            self._calls = threading.Thread(target=self._keep_calling, args=(told,), daemon=True)
            self._calls.start()

    @property
    def is_awaited(self) -> bool:
        """Whether a line to another node may still come."""
        return self.hub is None and not self._over.is_set() and (self._listening is not None or self._calls is not None)

    def _lacks_ranks(self, size: int) -> bool:
        attempt = layout.attempt_folder(self._bundle, 0)
        return sum(1 for _ in attempt.glob(f"rank*/{layout.PROCESS}")) < size

    def _listen(self) -> None:
        port = self._given.rpartition(":")[2]
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        try:
            self._listening = socket.create_server(
                ("", int(port) if port.isdigit() else 0), family=family, dualstack_ipv6=both
            )
        except OSError as error:
            print(f"phalanx: other nodes cannot call this one: {error}", flush=True)
            self._over.set()
            return
        manifest = read_manifest(self._bundle)
        self._token = self._token or (str(manifest.get("key")) if self._given else secrets.token_hex(16))
        at = [[name, self._listening.getsockname()[1]] for name in own_addresses()]
        told = {"at": at, "token": self._token, "bundle": manifest.get("id")}
        with contextlib.suppress(OSError):
            mirror.write(self._bundle / NODES / LISTENS.format(self._host), json.dumps(told).encode())
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()
        threading.Thread(target=self._keep_telling, daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        while not self._over.is_set() and len(self._links) < _MOST_LINES:
            try:
                connected, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self._hear_node, args=(connected,), daemon=True).start()

    def _hear_node(self, connected: socket.socket) -> None:
        """One node's line, until it ends. A stranger, or one that sends what is not its own, is hung up on."""
        with _said_here(), _greeted(connected, self._token, is_driver=True) as link:
            link.send("node", host=self._host)
            host = _name(link)
            if host == self._host:
                raise LinkError(f"two nodes call themselves {host}")
            self._links[link], self.hub = host, self._host
            try:
                mirror.take(link, self._bundle, mirror.BY_NODE, lambda match: self._is_of(match, host))
            finally:
                del self._links[link]

    def _is_of(self, match: Match[str], host: str) -> bool:
        is_ours = match["rank"] is not None and int(match["rank"]) in self._ranks
        return not is_ours and {match["host"] or host, match["node"] or host} == {host}

    def _keep_telling(self) -> None:
        sent: dict[tuple[Link, str], int] = {}
        while not self._over.wait(_EVERY_S):
            self._tell_nodes(sent)

    def _tell_nodes(self, sent: dict[tuple[Link, str], int]) -> None:
        """What nodes must know of each other: who lives, who hangs, and the verdict."""
        for path in [*(self._bundle / NODES).glob("*.json"), self._bundle / layout.REPORT]:
            with contextlib.suppress(OSError):
                changed, data = path.stat().st_mtime_ns, path.read_bytes()
                for link, host in list(self._links.items()):
                    if host != path.stem and sent.get((link, path.name)) != changed:
                        sent[link, path.name] = changed
                        mirror.send(link, path.relative_to(self._bundle).as_posix(), data)

    def _whom_to_call(self) -> dict[str, Any] | None:
        manifest = read_manifest(self._bundle)
        if self._given:
            host, _, port = self._given.rpartition(":")
            token = self._token or str(manifest.get("key"))
            return {"at": [[host.strip("[]"), int(port)]], "token": token} if host and port.isdigit() else None
        try:
            told = json.loads((self._bundle / NODES / CALLS.format(self._host)).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return told if isinstance(told, dict) and told.get("bundle") != manifest.get("id") else None

    def _keep_calling(self, told: Mapping[str, Any]) -> None:
        """One line to rank 0's node, made anew when it breaks, for as long as there are ranks here."""
        failed = ""
        while not self._over.is_set():
            for host, port in told["at"]:
                try:
                    connected = socket.create_connection((host, port), timeout=_CONNECT_S)
                except OSError as error:
                    failed = f"{host} port {port}: {error}"
                    continue
                with _said_here(), _greeted(connected, str(told["token"]), is_driver=False) as link:
                    failed = ""
                    self._speak(link)
            if failed and self.hub is None:
                print(f"phalanx: the companion of rank 0 cannot be reached: {failed}", flush=True)
            self._over.wait(_AGAIN_S)

    def _speak(self, link: Link) -> None:
        link.send("node", host=self._host)
        self.hub = _name(link)
        hearing = threading.Thread(target=self._hear_hub, args=(link,), daemon=True)
        hearing.start()
        sending = mirror.Mirror(self._bundle, self._host, lambda: self.secrets)
        while hearing.is_alive() and not self._over.wait(_EVERY_S):
            sending.send_changes(link, self._ranks)
        sending.send_changes(link, self._ranks)
        link.hang_up()

    def _hear_hub(self, link: Link) -> None:
        with contextlib.suppress(LinkError, OSError):
            mirror.take(link, self._bundle, mirror.TO_NODE, lambda match: match["node"] != self._host)

    def close(self) -> None:
        """Send what is still to be sent, and part."""
        if self._listening is not None:
            self._tell_nodes({})
            self._listening.close()
        self._over.set()
        if self._calls is not None:
            self._calls.join(_PATIENCE_S)
        for link in list(self._links):
            link.hang_up()
        for kind in (LISTENS, CALLS):
            (self._bundle / NODES / kind.format(self._host)).unlink(missing_ok=True)


@contextlib.contextmanager
def _said_here() -> Iterator[None]:
    """What goes wrong on a line ends it, and is said in this node's log."""
    try:
        yield
    except (LinkError, OSError) as error:
        print(f"phalanx: the line to another node is over: {error}", flush=True)


def _name(link: Link) -> str:
    first = link.receive()
    if first is None or first.kind != "node":
        raise LinkError("the other side does not say who it is")
    return str(first.data.get("host"))


@contextlib.contextmanager
def _greeted(connected: socket.socket, token: str, is_driver: bool) -> Iterator[Link]:
    """A line to whoever holds the job's token. Raises LinkError or OSError."""
    connected.settimeout(None)
    link = Link.over_socket(connected, _PATIENCE_S)
    limit = threading.Timer(_PATIENCE_S, link.hang_up)  # a stranger who says nothing
    limit.daemon = True
    limit.start()
    try:
        link.prove(token, is_driver=is_driver)
        limit.cancel()
        yield link
    finally:
        limit.cancel()
        link.close()
