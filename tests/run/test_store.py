"""The store at which Horovod's ranks meet, as a real process."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import phalanx.run
from phalanx.run.ports import listening

PROGRAM = Path(phalanx.run.__file__).with_name("store.py")


@pytest.fixture
def port() -> Iterator[int]:
    with listening() as served:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(PROGRAM), str(served.fileno())], pass_fds=[served.fileno()]
        )
        number = served.getsockname()[1]
    yield number
    process.kill()
    process.wait()


def ask(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, body)
    answer = connection.getresponse()
    found = (answer.status, answer.read())
    connection.close()
    return found


def test_values_are_kept_and_told(port: int) -> None:
    assert ask(port, "GET", "/global/0") == (404, b"")
    assert ask(port, "PUT", "/global/0", b"\x00address")[0] == 200
    assert ask(port, "GET", "/global/0") == (200, b"\x00address")
    assert ask(port, "GET", "/local/0") == (404, b"")


def test_a_scope_is_emptied_when_all_ranks_are_done_with_it(port: int) -> None:
    ask(port, "PUT", "/global/0", b"a")
    ask(port, "PUT", "/global/1", b"b")
    ask(port, "DELETE", "/global/0")
    assert ask(port, "GET", "/global/0")[0] == 200
    ask(port, "DELETE", "/global/1")
    assert ask(port, "GET", "/global/0")[0] == 404


def test_scopes_of_some_ranks_are_emptied_when_these_are_done(port: int) -> None:
    """Of one node, of one local number, of a process set: whatever the scope is called."""
    for scope in (
        "cross_1",
        "local_node1_process_set_hash_1e9d548172549547",
        "cross_1_process_set_hash_1e9d548172549547",
    ):
        for rank in ("0", "1", "2"):
            ask(port, "PUT", f"/{scope}/rank_{rank}", b"size")
            ask(port, "PUT", f"/{scope}/{rank}", b"address")
        ask(port, "DELETE", f"/{scope}/2")
        ask(port, "DELETE", f"/{scope}/0")
        assert ask(port, "GET", f"/{scope}/2")[0] == 200
        ask(port, "DELETE", f"/{scope}/1")
        assert ask(port, "GET", f"/{scope}/2")[0] == 404
        assert ask(port, "GET", f"/{scope}/rank_2")[0] == 404


@pytest.mark.parametrize("length", ["-1", "99999999999", "1048577", "many"])
def test_a_value_that_is_too_large_is_refused_at_once(port: int, length: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.putrequest("PUT", "/global/0")
    connection.putheader("Content-Length", length)
    connection.endheaders()
    assert connection.getresponse().status in (411, 413)
    connection.close()
    assert ask(port, "GET", "/global/0")[0] == 404
