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
            [sys.executable, "-I", "-S", str(PROGRAM), str(served.fileno()), "2"], pass_fds=[served.fileno()]
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
    ask(port, "DELETE", "/global/0")
    assert ask(port, "GET", "/global/0")[0] == 200
    ask(port, "DELETE", "/global/1")
    assert ask(port, "GET", "/global/0")[0] == 404


def test_scopes_of_several_nodes_have_their_own_numbers_of_ranks() -> None:
    """Node 0 has two ranks, node 1 has one: who shares a scope is told by its name."""
    from phalanx.run.store import _Values

    values = _Values()
    values.sizes = [2, 1]
    found = {scope: values.members(scope) for scope in ("global", "local_node0", "local_node1", "cross_0", "cross_1")}
    assert found == {"global": 3, "local_node0": 2, "local_node1": 1, "cross_0": 2, "cross_1": 1}
    values.sizes = [4]
    assert [values.members(scope) for scope in ("global_", "local_localhost", "cross_3")] == [4, 4, 1]
