"""The table answers for ranks that nothing is known of, too."""

from __future__ import annotations

import dataclasses

import pytest

from phalanx.blame import Doing, GroupCall, RankState
from tests.blame.tables import table, waiting


def test_a_rank_without_a_row_is_unseen() -> None:
    judged = table(waiting(0), size=2)
    assert judged.state(1).doing is Doing.UNSEEN
    assert judged.ranks_that(Doing.UNSEEN) == {1}
    assert judged.others == {1}


def test_calls_are_kept_by_group() -> None:
    state = RankState(0, calls=(GroupCall("0", 7), GroupCall("1", 3)))
    judged = table(state, waiting(1, 8))
    assert judged.groups["0"].keys() == {0, 1}
    assert judged.groups["1"].keys() == {0}


def test_the_number_of_a_rank_is_that_of_the_call_it_waits_in() -> None:
    assert GroupCall("0", 7, last_enqueued=9, last_completed=6).number == 7
    assert GroupCall("0", last_enqueued=9, last_completed=6).number == 9
    assert GroupCall("0").number is None


def test_nobody_changes_a_table() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        table(waiting(0)).about = None  # type: ignore[misc, assignment]
