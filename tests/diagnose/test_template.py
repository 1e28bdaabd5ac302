"""Texts of rules, filled."""

from __future__ import annotations

import pytest

from phalanx.diagnose.template import fill, name_ranks


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("port {port} is taken", {"port": "29500"}, "port 29500 is taken"),
        ("port {port|?} is taken", {}, "port ? is taken"),
        ("{who} fell", {"who": "rank 2"}, "Rank 2 fell"),
        ("It broke. {who|somebody} fell", {}, "It broke. Somebody fell"),
        ("waited{op? in {op}} long", {"op": "ALLREDUCE"}, "waited in ALLREDUCE long"),
        ("waited{op? in {op}} long", {}, "waited long"),
        ("{missing} x", {}, "(missing unknown) x"),
        ("no fields", {}, "no fields"),
        ("{evil}", {"evil": "{port}"}, "{port}"),
    ],
)
def test_fill(text: str, values: dict[str, str], expected: str) -> None:
    assert fill(text, values) == expected


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([], ""),
        ([2], "rank 2"),
        ([3, 0, 1], "ranks 0, 1, 3"),
        (range(256), "ranks 0-255"),
        ([0, 1, 2, 3, 9], "ranks 0-3, 9"),
    ],
)
def test_name_ranks(ranks: list[int], expected: str) -> None:
    assert name_ranks(ranks) == expected
