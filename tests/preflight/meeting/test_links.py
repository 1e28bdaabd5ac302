"""A link between two ranks: they introduce themselves, one asks and the other answers, and strangers are sent away."""

from __future__ import annotations

import socket
import threading

import pytest

from phalanx.preflight.channels import AgentError
from phalanx.preflight.meeting.links import Guest, Link, LinkChannel, guest_of

ONE, OTHER = Guest(0, "a", "h0", 2), Guest(1, "b", "h1", 2)


def pair() -> tuple[Link, Link]:
    here, there = socket.socketpair()
    found: list[Link] = []
    thread = threading.Thread(target=lambda: found.append(Link(there, OTHER)))
    thread.start()
    first = Link(here, ONE)
    thread.join(5)
    return first, found[0]


def test_either_end_may_ask_and_the_other_answers() -> None:
    one, other = pair()
    assert (one.guest, other.guest) == (OTHER, ONE)
    one.start(5.0)
    other.start(5.0)
    assert LinkChannel(one).ask("clock", {}, 5.0)[0]["time"] > 0
    assert LinkChannel(other).ask("clock", {}, 5.0)[0]["time"] > 0
    one.close()
    other.close()


def test_claims_farewells_and_the_end_are_told() -> None:
    one, other = pair()
    told: list[str] = []
    ended = threading.Event()
    other.on_claim, other.on_bye, other.on_end = lambda: told.append("claim"), lambda: told.append("bye"), ended.set
    other.start(5.0)
    one.send({"leads": 1})
    LinkChannel(one).close()
    one.close()
    assert ended.wait(5)
    assert told == ["claim", "bye"]
    with pytest.raises(AgentError):
        LinkChannel(other).ask("clock", {}, 1.0)


@pytest.mark.parametrize("told", [{}, {"phalanx-check": 1}, {"phalanx-check": 2, "rank": 0}, "HTTP/1.1 400", None])
def test_a_stranger_is_no_guest(told: object) -> None:
    with pytest.raises(ValueError, match="greeting"):
        guest_of(told)
