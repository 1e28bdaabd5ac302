"""Paths that work badly: compared with the others, looked at twice, and told apart."""

from __future__ import annotations

from typing import Any

from phalanx.preflight.findings import explain
from phalanx.preflight.network.quality import judge_idle, judge_speed, suspects
from phalanx.preflight.network.survey import Survey
from tests.preflight.network.surveys import survey


def figures(rtt_us: int = 100, rate: float = 2e8, lost: int = 0) -> dict[str, Any]:
    return {
        "outcome": "ok", "ping_us": rtt_us + 60, "min_rtt_us": rtt_us, "drip": {"up": lost, "up_of": 250, "down": 0, "down_of": 250},
        "up": {"rate": rate}, "down": {"rate": rate}, "up_delivery": 0, "down_delivery": 0,
    }  # fmt: skip


def measured(count: int, bad: dict[tuple[int, int], dict[str, Any]]) -> Survey:
    seen = survey(count)
    for one in range(count):
        for other in range(one + 1, count):
            seen.speeds[(one, other)] = [bad.get((one, other), figures())]
    return seen


def cause_of(seen: Survey) -> tuple[str, tuple[str, ...]]:
    (check_fact,) = judge_speed(seen)
    explained = explain(check_fact.fact)
    assert explained is not None
    return explained.cause, check_fact.accused


def test_equal_paths_give_no_fact_even_if_all_are_slowish() -> None:
    seen = measured(4, {})
    assert (judge_speed(seen), suspects(seen)) == ([], {})
    busy = {(one, other): figures(rtt_us=1500, rate=4e7) for one in range(4) for other in range(one + 1, 4)}
    assert judge_speed(measured(4, busy)) == []


def test_the_host_that_all_bad_paths_share_is_accused() -> None:
    far = {(0, 1): figures(rtt_us=40000), (1, 2): figures(rtt_us=41000), (1, 3): figures(rtt_us=40500)}
    assert cause_of(measured(4, far)) == ("slow-latency", ("h1",))
    lossy = {(0, 1): figures(lost=12), (1, 2): figures(lost=9), (1, 3): figures(lost=14)}
    assert cause_of(measured(4, lossy)) == ("packet-loss", ("h1",))
    narrow = {(0, 1): figures(rate=1.2e6), (1, 2): figures(rate=1.3e6), (1, 3): figures(rate=1.2e6)}
    assert cause_of(measured(4, narrow)) == ("narrow-link", ("h1",))


def test_a_path_that_is_far_is_not_also_narrow() -> None:
    assert cause_of(measured(3, {(0, 1): figures(40000, 8e5), (1, 2): figures(40000, 9e5)}))[0] == "slow-latency"


def test_what_was_bad_once_and_good_the_second_time_is_no_fact() -> None:
    seen = measured(3, {(0, 1): figures(rtt_us=9000, rate=5e6, lost=4)})
    assert list(suspects(seen)) == [(0, 1)]
    seen.speeds[(0, 1)].append(figures())
    assert judge_speed(seen) == []


def test_few_pairs_of_a_host_are_looked_at_again() -> None:
    bad = {(0, other): figures(lost=5) for other in range(1, 8)}
    assert len(suspects(measured(8, bad))) == 2


def test_two_hosts_are_judged_by_what_is_usual_between_hosts() -> None:
    assert cause_of(measured(2, {(0, 1): figures(rtt_us=30000)})) == ("slow-latency", ("h0", "h1"))
    assert judge_speed(measured(2, {(0, 1): figures(rtt_us=900)})) == []


def test_idle_connections() -> None:
    seen = survey(3)
    seen.idle_s = 1.4
    seen.idle = [
        {"id": [0, 1, "mesh"], "outcome": "silent", "idle": 1.4},
        {"id": [1, 2, "mesh"], "outcome": "reset", "idle": 1.4},
    ]
    seen.idle.append({"id": [0, 2, "mesh"], "outcome": "pong", "idle": 1.4})
    (check_fact,) = judge_idle(seen)
    assert check_fact.accused == ("h1",)
    seen.idle = [{"id": [0, 1, "mesh"], "outcome": "busy", "idle": 1.4}]
    assert judge_idle(seen) == []
