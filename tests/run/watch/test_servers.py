"""Parameter servers and workers that do not serve."""

from __future__ import annotations

from phalanx.model import Frame
from phalanx.run.watch.servers import find_idle_server
from phalanx.run.watch.stacks import ProcessStacks, Thread

ROLES = {0: "chief 0", 1: "worker 0", 2: "worker 1", 3: "ps 0"}
JOIN = Frame("/site-packages/tensorflow/python/training/server_lib.py", 200, "join")


def stacks(**own: Frame) -> dict[int, ProcessStacks]:
    found = {}
    for rank in ROLES:
        frames = (Frame("/home/me/train.py", 12, "<module>"), own.get(f"r{rank}", JOIN))
        found[rank] = ProcessStacks(rank, (Thread("MainThread", False, frames),))
    return found


def test_a_server_that_is_elsewhere_is_accused() -> None:
    found = find_idle_server(
        stacks(r0=Frame("/home/me/train.py", 30, "fit"), r3=Frame("/home/me/train.py", 10, "load")), ROLES, {}
    )
    assert found is not None
    assert found.culprits == {3}
    assert "in load() at train.py:10" in found.text


def test_all_serve_or_nothing_is_known() -> None:
    assert find_idle_server(stacks(r0=Frame("/home/me/train.py", 30, "fit")), ROLES, {}) is None
    assert find_idle_server(stacks(), {}, {}) is None
    assert find_idle_server(stacks(r3=Frame("/home/me/train.py", 10, "load")), ROLES, {3: 0}) is None
