"""The agent's network verbs, on this machine: who answers, what a wrong service looks like, and that nothing stays open."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from phalanx.preflight.agent import network
from phalanx.preflight.agent.kernel import forgetting, plain, route_to, tcp_info

TOKEN = "t0ken"


def ask(verb: str, **args: Any) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    network.VERBS[verb]({"token": TOKEN, "label": "me", **args}, told.append)
    return told


@pytest.fixture
def port() -> Iterator[int]:
    """Where the check listens, under the label `you`."""
    told = ask("listen", label="you", spread=[0.5])[0]
    yield next(one["port"] for one in told["ports"] if one.get("kind") == "any" and one["family"] == "ipv4")
    ask("close")


def call(port: int, **more: Any) -> dict[str, Any]:
    target = {"id": [0, 1, "given"], "address": "127.0.0.1", "port": port}
    told = ask("connect", targets=[target], timeout=1.0, patience=0.5, **more)
    assert [list(one) for one in told[1:]] == [["fine"]]
    return told[0]


@contextmanager
def service(banner: bytes | None) -> Iterator[int]:
    """Somebody else's service: greets, keeps silent, or closes at once (None)."""
    server = socket.create_server(("127.0.0.1", 0))
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            if banner is None:
                peer.recv(100)
                peer.close()
                continue
            kept.append(peer)
            if banner:
                peer.sendall(banner)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(5)
    for one in kept:
        one.close()


def test_the_greeting_says_who_answered_and_what_it_saw(port: int) -> None:
    told = call(port, large=24 << 10)
    assert (told["outcome"], told["peer"], told["token"], told["large"]) == ("ok", "you", TOKEN, "ok")
    assert told["saw"][0] == told["local"] == "127.0.0.1"
    assert told["info"]["min_rtt"] < 1_000_000


@pytest.mark.parametrize(
    ("banner", "outcome"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "foreign"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "foreign"),
        (b"", "mute"),
        (None, "closed"),
    ],
)
def test_other_services_are_told_by_what_they_say(banner: bytes | None, outcome: str) -> None:
    with service(banner) as port:
        told = call(port)
    assert told["outcome"] == outcome
    if banner:
        assert told["banner"].startswith(banner[:8].decode())


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    told = call(free)
    assert (told["outcome"], told["attempts"]) == ("refused", 2)  # asked again before it is said


def test_a_name_that_does_not_resolve() -> None:
    told = ask("connect", targets=[{"id": [0, -1, "store"], "address": "nowhere.invalid", "port": 1}], timeout=1.0)[0]
    assert told["outcome"] == "unresolved"


def test_no_route() -> None:
    if route_to("192.0.2.1").get("error") is None:
        pytest.skip("this machine has a route to everywhere: the bed of route-missing tests it")
    told = ask("connect", targets=[{"id": [0, 1, "mesh"], "address": "192.0.2.1", "port": 9}], timeout=1.0)[0]
    assert told["outcome"] == "no-route"


def test_a_port_in_use_is_said_when_listening() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        told = ask("listen", ports=[server.getsockname()[1]])[0]
        ask("close")
    assert [one.get("errno") for one in told["ports"] if one.get("given") and one["family"] == "ipv4"] == [98]


def test_latency_loss_and_bandwidth_of_a_good_path(port: int) -> None:
    (told,) = ask("measure", targets=[{"id": [0, 1], "address": "127.0.0.1", "port": port}], timeout=20.0)
    assert told["outcome"] == "ok"
    assert told["drip"]["up_of"] > 50
    assert told["drip"]["up"] == told["drip"]["down"] == 0
    assert min(told["up"]["rate"], told["down"]["rate"]) > 1e6


def test_a_kept_connection_still_speaks_and_everything_is_closed_at_the_end() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    told = ask("listen", label="you")[0]
    port = next(one["port"] for one in told["ports"] if one["family"] == "ipv4")
    (told,) = ask("connect", mesh=[[1, "127.0.0.1", port, 1]], me=0, timeout=1.0)
    assert [row[:2] for row in told["fine"]] == [[1, "you"]]  # short where there is nothing to say
    (idle,) = ask("idle", wait=10.0)
    assert idle["outcome"] == "pong"
    listener = network._listeners[TOKEN]
    ask("close")
    listener.thread.join(10)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_garbage_does_not_end_the_listener(port: int) -> None:
    for text in (b"\x00\xff" * 3000, b"GET / HTTP/1.1\r\n\r\n", b"up 99999999999999999999\n", b"down x\n", b"{}\n"):
        with socket.create_connection(("127.0.0.1", port), 5) as sock:
            sock.settimeout(5)
            sock.sendall(text)
            sock.shutdown(socket.SHUT_WR)
            try:
                while sock.recv(65536):
                    pass
            except OSError:
                pass
    assert call(port)["outcome"] == "ok"


def test_the_kernel_is_asked_without_programs() -> None:
    assert route_to("127.0.0.1")["interface"] == "lo"
    assert plain("::ffff:10.0.0.1") == "10.0.0.1"
    assert plain("fe80::1%eth0") == "fe80::1"
    assert forgetting()["keepalive"] > 0
    with socket.socket() as sock:
        assert "snd_mss" in tcp_info(sock)
