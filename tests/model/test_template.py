"""Texts of rules, filled."""

from __future__ import annotations

import pytest

from phalanx.model.template import fill, fill_without_job


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("port {port} is taken", {"port": "29500"}, "port 29500 is taken"),
        ("port {port|?} is taken", {}, "port ? is taken"),
        ("{who} fell", {"who": "rank 2"}, "Rank 2 fell"),
        ("{where|A line} calls it twice", {"where": "train.py:31"}, "train.py:31 calls it twice"),
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


def test_one_waits_and_several_wait() -> None:
    text = "{waiting|Some ranks} wait for {culprits|a rank}."
    assert fill(text, {"waiting": "rank 0", "culprits": "rank 1"}) == "Rank 0 waits for rank 1."
    assert fill(text, {"waiting": "ranks 0, 2", "culprits": "rank 1"}) == "Ranks 0, 2 wait for rank 1."


def test_a_page_about_a_rule_has_no_job_to_fill_it() -> None:
    text = "{culprits|A rank} left{op? in {op}}; set {variable} to {value|another value}."
    assert fill_without_job(text) == "A rank left; set ‹variable› to another value."


def test_a_field_within_conditional_words_may_have_words_for_its_absence() -> None:
    text = "Look at it.{condition? Only {culprits|one rank} gets there, under `{condition}`.}"
    assert fill(text, {"condition": "if rank == 1"}) == "Look at it. Only one rank gets there, under `if rank == 1`."
    assert fill(text, {}) == "Look at it."
