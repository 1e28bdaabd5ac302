"""Records of the watch that older releases wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from phalanx.sources.bundle import read_watch

PLACES = {
    "0": {"doing": "collective", "call": "all_reduce", "file": "/job/train.py", "line": 88, "function": "main"},
    "1": {"doing": "collective", "call": "all_reduce", "file": "/job/train.py", "line": 88, "function": "main"},
    "2": {"doing": "elsewhere", "file": "/job/train.py", "line": 131, "function": "evaluate", "condition": "if rank == 2"},
}  # fmt: skip


def stall(**data: Any) -> dict[str, Any]:
    given = {"missing": [2], "waiting": [0, 1], "reason": "elsewhere", "places": PLACES, "quiet_s": 8.2, **data}
    return {"kind": "stall", "ranks": given["missing"], "text": "ranks 0, 1 wait; why it is so", "data": given}


def facts(record: dict[str, Any]) -> list[Any]:
    return [event.fact for event in read_watch("watch.jsonl", json.dumps(record))]


def test_a_stall_is_told_by_its_data() -> None:
    (fact,) = facts(stall())
    assert (fact.id, fact.ranks) == ("stall.waits-for-rank", (2,))
    assert fact.fields["own"] == "is in evaluate() at train.py:131, under `if rank == 2`"
    assert (fact.fields["waiting"], fact.fields["call"], fact.fields["seconds"]) == (
        (0, 1),
        "all_reduce at train.py:88",
        8,
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"reason": "stopped"}, "stall.stopped"),
        ({"reason": "leaving"}, "stall.does-not-end"),
        ({"reason": "root"}, "stall.root-differs"),
        ({"reason": "ahead"}, "stall.left-common-path"),
        ({"reason": "circle", "missing": [], "circles": [[0, 1]]}, "stall.cycle"),
        ({"places": {**PLACES, "2": {"doing": "data", "file": "t.py", "line": 3}}}, "stall.waits-for-data"),
        ({"places": {**PLACES, "0": {"doing": "connect", "call": "init_process_group"}}}, "stall.waits-for-peers"),
    ],
)
def test_each_reason_has_its_fact(data: dict[str, Any], expected: str) -> None:
    (fact,) = facts(stall(**data))
    assert fact.id == expected


def test_a_tie_of_sends_and_receives_is_beyond_recorders() -> None:
    places = {"0": {"doing": "collective", "call": "recv", "partner": 1, "file": "t.py", "line": 3}}
    (fact,) = facts(stall(reason="nobody", missing=[], places=places))
    assert fact.fields["reason"] == "exchange"


def test_stragglers_deaths_and_the_network() -> None:
    data = {"why": "data", "factor": 5.12, "others_wait": 0.81}
    text = "rank 2 is steadily slower: the others wait; it waits for its data loader"
    (slow,) = facts({"kind": "straggler", "ranks": [2], "text": text, "data": data})
    assert slow.fields == {"factor": "5.1", "what": "data", "why": "it waits for its data loader", "share": "81%"}
    (death,) = facts({"kind": "death", "ranks": [1], "text": "", "data": {"cause": "oom-cgroup", "text": "killed"}})
    assert (death.id, death.fields["cause"], death.fields["child"]) == ("rank.died", "oom-cgroup", True)
    lost = "the host h1 (rank 1) is off or cut off: its agent is silent"
    (host,) = facts({"kind": "network", "ranks": [1], "text": lost, "data": {}})
    assert (host.id, host.fields["host"]) == ("network.host-lost", "h1")


@pytest.mark.parametrize("data", [{"places": {"x": {}}}, {"places": 7}, {"quiet_s": "x"}, {"reason": 3}])
def test_damaged_data_do_no_harm(data: dict[str, Any]) -> None:
    assert len(read_watch("watch.jsonl", json.dumps(stall(**data)))) == 1
