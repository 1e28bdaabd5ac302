"""What an agent obeys: orders of the attempt that runs, and the silence of a driver that is gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.remote.link import Link
from phalanx.remote.orders import Orders
from tests.run.jobs import wait_for


@pytest.fixture
def line(tmp_path: Path) -> Iterator[tuple[Link, Link, Orders]]:
    """The driver's end, the agent's, and what it obeys."""
    there, back = os.pipe(), os.pipe()
    to_agent, to_driver = os.fdopen(there[1], "wb"), os.fdopen(back[1], "wb")
    driver = Link.over_pipes(back[0], there[1], hang_up=to_agent.close)
    agent = Link.over_pipes(there[0], back[1], hang_up=to_driver.close)
    yield driver, agent, Orders(agent, tmp_path)
    driver.hang_up()
    agent.hang_up()
    to_agent.close()
    to_driver.close()
    os.close(there[0])
    os.close(back[0])


def test_an_order_that_comes_late_does_not_end_the_next_attempt(line: tuple[Link, Link, Orders]) -> None:
    driver, _, orders = line
    driver.send("end", reason="failed", text="rank 2 ended", status=1, attempt=0)
    driver.send("over", attempt=0)
    driver.send("prepare", ports=1)
    told = orders.next(30)
    assert told is not None
    assert told.kind == "prepare"
    assert orders.end(1) is None
    assert not orders.is_over(1)
    assert orders.is_over(0)
    found = orders.end(0)
    assert found is not None
    assert found.text == "rank 2 ended"
    assert orders.end(0) is None


def test_force_and_a_driver_that_is_gone(line: tuple[Link, Link, Orders]) -> None:
    driver, _, orders = line
    driver.send("end", reason="cancelled", text="cancelled", status=130, attempt=3, force=True)
    assert wait_for(lambda: (found := orders.end(3)) is not None and found.kind == "killed", 30)
    driver.hang_up()
    assert wait_for(lambda: orders.is_gone, 30)
    gone = orders.end(3)
    assert gone is not None
    assert gone.text == "the driver is gone"


def test_files_arrive_in_the_agents_folder_alone_and_a_bad_disk_is_told(
    line: tuple[Link, Link, Orders], tmp_path: Path
) -> None:
    driver, _, orders = line
    driver.send("put", b"one ", name="call.pickle", offset=0)
    driver.send("put", b"two", name="sub/call.pickle", offset=4)
    (tmp_path / "project.tar").mkdir()  # what cannot be written to
    driver.send("put", b"x", name="project.tar", offset=0)
    refused = driver.receive()
    assert refused is not None
    assert refused.kind == "refused"
    assert "project.tar cannot be written" in refused.data["text"]
    assert (tmp_path / "call.pickle").read_bytes() == b"one two"
    driver.send("put", b"x", name="../outside", offset=0)  # whoever says this is no driver of ours
    assert wait_for(lambda: orders.is_gone, 30)
    assert not (tmp_path.parent / "outside").exists()
