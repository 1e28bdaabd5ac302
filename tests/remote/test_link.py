"""The line between driver and agent, over real sockets and pipes."""

from __future__ import annotations

import json
import os
import pickle
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from phalanx.remote.link import MOST_PAYLOAD, Link, LinkError


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as served:
        one = socket.create_connection(served.getsockname())
        other, _ = served.accept()
    yield one, other
    one.close()
    other.close()


def prove(driver: Link, agent: Link, tokens: tuple[str, str] = ("secret", "secret")) -> list[Exception | None]:
    """Both sides of the handshake at once."""
    found: list[Exception | None] = [None, None]

    def side(index: int, link: Link) -> None:
        try:
            link.prove(tokens[index], is_driver=index == 0)
        except (LinkError, OSError) as error:
            found[index] = error
            link.close()

    threads = [threading.Thread(target=side, args=pair) for pair in ((0, driver), (1, agent))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return found


def test_messages_pass_both_ways_and_large_payloads_whole(sockets: tuple[socket.socket, socket.socket]) -> None:
    driver, agent = map(Link.over_socket, sockets)
    assert prove(driver, agent) == [None, None]
    payload = os.urandom(MOST_PAYLOAD)
    sender = threading.Thread(target=lambda: driver.send("put", payload, name="x", offset=7))
    sender.start()
    message = agent.receive()
    sender.join(30)
    assert message is not None
    assert (message.kind, message.data, message.payload == payload) == ("put", {"name": "x", "offset": 7}, True)
    agent.send("beat", ranks={"0": {"step": 3}})
    answer = driver.receive()
    assert answer is not None
    assert answer.data == {"ranks": {"0": {"step": 3}}}
    agent.close()
    assert driver.receive() is None


def test_pipes_carry_the_same() -> None:
    there, back = os.pipe(), os.pipe()
    driver, agent = Link.over_pipes(back[0], there[1]), Link.over_pipes(there[0], back[1])
    assert prove(driver, agent) == [None, None]
    agent.send("done", status=0)
    message = driver.receive()
    assert message is not None
    assert message.data == {"status": 0}
    for end in (*there, *back):
        os.close(end)


def test_who_does_not_hold_the_token_is_refused_by_the_driver_and_refuses_it(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    driver, agent = map(Link.over_socket, sockets)
    errors = prove(driver, agent, ("secret", "guess"))
    assert isinstance(errors[0], LinkError)
    assert "token" in str(errors[0])
    assert isinstance(errors[1], (LinkError, OSError))


def test_the_token_itself_never_passes(sockets: tuple[socket.socket, socket.socket]) -> None:
    driver = Link.over_socket(sockets[0])

    def greet() -> None:
        with pytest.raises((LinkError, OSError)):
            driver.prove("very-secret-token", is_driver=True)

    thread = threading.Thread(target=greet)
    thread.start()
    said = sockets[1].recv(4096)
    sockets[1].sendall(_frame({"kind": "hello", "protocol": 1, "nonce": "0" * 32}))
    said += sockets[1].recv(4096)
    sockets[1].close()
    thread.join(30)
    assert b"nonce" in said
    assert b"very-secret-token" not in said


def _frame(header: dict[str, object] | bytes, payload: bytes = b"") -> bytes:
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack(">II", len(data), len(payload)) + data + payload


@pytest.mark.parametrize(
    "said",
    [
        pickle.dumps(print),
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        _frame(pickle.dumps({"kind": "hello"})),
        _frame({"kind": "hello", "protocol": 1, "nonce": "short"}),
        _frame({"kind": "hello", "protocol": 99, "nonce": "0" * 32}),
        _frame({"kind": "start", "command": ["rm"]}),
        _frame([1, 2]),  # type: ignore[arg-type]
        struct.pack(">II", 1 << 30, 0),
        struct.pack(">II", 10, 1 << 30),
    ],
)
def test_a_stranger_is_hung_up_on(sockets: tuple[socket.socket, socket.socket], said: bytes) -> None:
    driver = Link.over_socket(sockets[0])
    sockets[1].sendall(said)
    sockets[1].shutdown(socket.SHUT_WR)
    with pytest.raises((LinkError, OSError)):
        driver.prove("secret", is_driver=True)


def test_a_changed_frame_is_noticed(sockets: tuple[socket.socket, socket.socket]) -> None:
    """Somebody on the way: he can see frames, but not make one, nor send one again."""
    with socket.create_server(("127.0.0.1", 0)) as served:
        far = socket.create_connection(served.getsockname())
        middle, _ = served.accept()
    driver, agent = Link.over_socket(sockets[0]), Link.over_socket(far)

    def pump(source: socket.socket, target: socket.socket, kept: list[bytes]) -> None:
        try:
            while data := source.recv(1 << 16):
                kept.append(data)
                target.sendall(data)
        except OSError:
            return

    seen: list[bytes] = []
    for pair in ((middle, sockets[1], seen), (sockets[1], middle, [])):
        threading.Thread(target=pump, args=pair, daemon=True).start()
    assert prove(driver, agent) == [None, None]
    agent.send("exit", rank=0, code=0)
    message = driver.receive()
    assert message is not None
    sockets[1].sendall(seen[-1])  # the same frame once more
    with pytest.raises(LinkError, match="token"):
        driver.receive()
    far.close()
    middle.close()


def test_what_a_login_shell_prints_is_passed_over() -> None:
    there, back = os.pipe(), os.pipe()
    driver, agent = Link.over_pipes(back[0], there[1]), Link.over_pipes(there[0], back[1])
    os.write(back[1], b"Welcome to node7\n\0 loading modules \n")
    agent.mark()
    driver.await_mark()
    assert prove(driver, agent) == [None, None]
    for end in (*there, *back):
        os.close(end)


def test_where_no_agent_speaks_it_is_told_what_was_said() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"This account is not available.\n")
    os.close(writing)
    with pytest.raises(LinkError, match=r"no agent speaks there; .*This account is not available"):
        Link.over_pipes(reading, 1).await_mark()
    os.close(reading)


def send_without_end(link: Link) -> None:
    for _ in range(100):
        link.send("put", bytes(MOST_PAYLOAD))


@pytest.mark.parametrize("kind", ["pipes", "sockets"])
def test_who_takes_nothing_does_not_keep_the_sender_for_ever(
    kind: str, sockets: tuple[socket.socket, socket.socket]
) -> None:
    there, back = os.pipe(), os.pipe()
    ends = [os.fdopen(there[1], "wb"), os.fdopen(back[0], "rb")]
    if kind == "pipes":
        link = Link.over_pipes(back[0], there[1], ends[0].close, ends[1].close, patience=1)
    else:
        link = Link.over_socket(sockets[0], patience=1)
    with pytest.raises(TimeoutError, match="taken nothing for 1 s"):
        send_without_end(link)
    link.hang_up()
    with pytest.raises(BrokenPipeError):
        link.send("bye")
    link.close()
    for end in (there[0], back[1]):
        os.close(end)
    for one in ends:
        one.close()
