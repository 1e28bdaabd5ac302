"""Chosen ports are nobody else's, and a rank can still listen on them."""

from __future__ import annotations

import socket

import pytest

from phalanx.run.ports import Ports, listening


def test_many_holders_never_share() -> None:
    held = [Ports(20) for _ in range(20)]
    numbers = [number for one in held for number in one.numbers]
    assert len(set(numbers)) == 400
    for one in held:
        one.close()


def test_the_kernel_gives_a_held_port_to_nobody_who_asks_for_any() -> None:
    with Ports(200) as held:
        for _ in range(200):
            with socket.socket() as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                other.bind(("127.0.0.1", 0))
                assert other.getsockname()[1] not in held.numbers


@pytest.mark.parametrize("option", [socket.SO_REUSEADDR, socket.SO_REUSEPORT])
def test_a_rank_listens_on_a_held_port_and_is_reached(option: int) -> None:
    with Ports(1) as held, socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, option, 1)
        server.bind(("", held.numbers[0]))
        server.listen()
        with socket.create_connection(("127.0.0.1", held.numbers[0]), timeout=5):
            server.accept()[0].close()


def test_a_stranger_who_does_not_share_is_refused() -> None:
    with Ports(1) as held, socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", held.numbers[0]))


def test_listening_is_reachable_at_once() -> None:
    with listening() as server, socket.create_connection(server.getsockname(), timeout=5):
        pass
