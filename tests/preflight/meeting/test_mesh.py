"""Ranks that are joined over the network: at the store's port, by a beacon on the link, and who of them leads."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import phalanx
from phalanx.lab import Bed
from phalanx.preflight.meeting.links import Guest
from phalanx.preflight.meeting.mesh import Mesh, ports_of
from phalanx.preflight.meeting.seat import Seat
from tests.lab.beds import needs_beds

PORT = 29433


def mesh(rank: int, port: int = PORT) -> Mesh:
    seat = Seat(rank, 2, None, "job", ("127.0.0.1", port))
    return Mesh(seat, Guest(rank, f"r{rank}", "here", 2), 10.0, link=False)


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 20
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    assert condition()


@pytest.fixture
def two() -> tuple[Mesh, Mesh]:
    return mesh(0), mesh(1)


def test_two_ranks_meet_where_the_job_would_and_the_lowest_leads(two: tuple[Mesh, Mesh]) -> None:
    one, other = two
    try:
        wait_for(lambda: one.guests() and other.guests() and one.leads() and not other.leads())
        assert one.claim()
        wait_for(lambda: other.is_led)
        (target,) = one.targets(set())
        assert target.ranks == (1,)
        assert target.ask("clock", {}, 5.0)
        target.close()
        assert other.dismissed.wait(5)
    finally:
        one.close()
        other.close()


def test_of_two_that_claim_at_once_the_lower_leads(two: tuple[Mesh, Mesh]) -> None:
    one, other = two
    try:
        wait_for(lambda: one.guests() and other.guests())
        other._claims = True
        one._claims = True
        one._be_led(next(iter(one.links.values())))
        other._be_led(next(iter(other.links.values())))
        assert (one.is_led, other.is_led) == (False, True)
    finally:
        one.close()
        other.close()


def test_whoever_led_and_is_gone_leads_no_more(two: tuple[Mesh, Mesh]) -> None:
    one, other = two
    try:
        wait_for(lambda: one.guests() and other.guests())
        assert one.claim()
        wait_for(lambda: other.is_led)
        one.close()
        wait_for(lambda: not other.is_led)
        assert not other.dismissed.is_set()
    finally:
        other.close()


def test_ports_to_look_at() -> None:
    assert ports_of(Seat(0, 2, None, "", ("h0", 29500))) == [29500, 29501, 29502, 29503, 29504]
    assert ports_of(Seat(0, 2, None, "", ("h0", 65533), store_is_up=True)) == [65534, 65535]


_NEIGHBOUR = """
import sys, time
from phalanx.preflight.meeting.links import Guest
from phalanx.preflight.meeting.mesh import Mesh
from phalanx.preflight.meeting.seat import Seat
rank = int(sys.argv[1])
mesh = Mesh(Seat(rank, 2, None, "job", ("10.77.0.99", int(sys.argv[2]))), Guest(rank, f"r{rank}", "h", 2), 10.0, link=True)
until = time.monotonic() + float(sys.argv[3])
while time.monotonic() < until and not mesh.guests():
    time.sleep(0.02)
print(*mesh.guests())
time.sleep(0.5)
"""


def on_hosts(bed: Bed, told: list[tuple[str, str]], seconds: float) -> list[str]:
    source = str(Path(phalanx.__file__).parents[1])
    started = [
        host.start(
            ["env", f"PYTHONPATH={source}", sys.executable, "-c", _NEIGHBOUR, rank, port, str(seconds)],
            stdout=subprocess.PIPE,
        )
        for host, (rank, port) in zip(bed, told, strict=True)
    ]
    return [process.communicate(timeout=90)[0].strip() for process in started]


@needs_beds
def test_neighbours_find_each_other_though_the_address_is_wrong() -> None:
    with Bed(2) as bed:
        bed["h0"].filter('iifname "lo" accept', "ct state established accept", "meta l4proto tcp drop")
        assert on_hosts(bed, [("0", "29500"), ("1", "29501")], 60.0) == ["r1", "r0"]


@needs_beds
def test_a_rank_of_another_job_is_let_alone() -> None:
    with Bed(2) as bed:
        assert on_hosts(bed, [("1", "29500"), ("1", "29501")], 3.0) == ["", ""]
