"""Agents that connect to the driver by themselves, and strangers that try to."""

from __future__ import annotations

import os
import socket
import struct
import time
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

import phalanx
import phalanx.backends
from phalanx.remote.bundle_receiver import BundleReceiver
from phalanx.remote.lines import Lines
from phalanx.remote.link import Link, LinkError

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    foreign = EntryPoints([EntryPoint("dialing", "tests.remote.dialing", "phalanx.backends")])
    monkeypatch.setattr(phalanx.backends, "entry_points", lambda group: foreign)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(phalanx.__file__).parent.parent))


@phalanx.function(workers=3, framework="none", grace=2, project=".")
def place() -> tuple[str, str | None, bool]:
    return os.environ["RANK"], os.environ.get("MY_NODE"), any(name.startswith("PHALANX_T") for name in os.environ)


def test_agents_find_the_driver_and_their_places() -> None:
    assert place.on("dialing", nodes=2)() == [("0", None, False), ("1", None, False), ("2", None, False)]


def test_agents_that_know_their_number_keep_it_and_a_queue_is_told() -> None:
    call = place.on("dialing", nodes=3, numbered=True, queue=6).submit()
    seen = set()
    while not call.wait(0.05):
        seen.add(str(call.status()).partition(",")[0])
    assert "queued (Resources)" in seen
    assert [node for _, node, _ in call.results()] == ["0", "1", "2"]
    assert (call.bundle / "engine-queue.log").read_text() == "it was a short one"


def test_strangers_are_not_let_in_and_do_not_keep_the_driver_busy(tmp_path: Path) -> None:
    lines = Lines("the token", BundleReceiver(tmp_path / "bundle", print), lambda rank, data, is_error: None)
    port = lines.listen("127.0.0.1")
    for _ in range(70):  # who is gone before he is greeted, as a port scanner is, keeps no place
        scanner = socket.create_connection(("127.0.0.1", port))
        scanner.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        scanner.close()
    strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(70)]
    strangers[0].sendall(b"\x80\x04c__builtin__\neval\n")
    link = Link.over_socket(strangers[1])
    with pytest.raises((LinkError, OSError)):
        link.prove("a guess", is_driver=False)
    for stranger in strangers:
        stranger.close()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # a place is free again as soon as a stranger is gone
        friend = Link.over_socket(socket.create_connection(("127.0.0.1", port)))
        try:
            friend.prove("the token", is_driver=False)
            break
        except (LinkError, OSError):
            time.sleep(0.1)
    friend.send("node", node=0)
    line, message = lines.events.get(timeout=30)
    assert message is not None
    assert message.kind == "node"
    friend.close()
    assert lines.events.get(timeout=30) == (line, None)
    lines.close()


def test_slow_strangers_delay_no_agent_and_odd_proofs_are_refused_quietly(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = Lines("the token", BundleReceiver(tmp_path / "bundle", print), lambda rank, data, is_error: None)
    port = lines.listen("127.0.0.1")
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
    for stranger in slow:
        stranger.sendall(b"\0")  # and nothing more
    began = time.monotonic()
    friend = Link.over_socket(socket.create_connection(("127.0.0.1", port)))
    friend.prove("the token", is_driver=False)
    assert time.monotonic() - began < 10, "less than a greeting may take"
    for nonce, proof in (("0" * 32, "\u00e9" * 64), ("\u00fc" * 32, "x"), ("\ud800" * 32, "\ud800"), ("1" * 32, 7)):
        odd = Link.over_socket(socket.create_connection(("127.0.0.1", port)))
        odd.send("hello", protocol=1, nonce=nonce)
        odd.send("proof", proof=proof)
        while odd.receive() is not None:
            pass
        odd.close()
    for stranger in slow:
        stranger.close()
    friend.close()
    lines.close()
    assert "Traceback" not in capfd.readouterr().err
    assert any("token" in why or "greeting" in why for why in lines.refused)
