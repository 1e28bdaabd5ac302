"""Members of process groups, by what ranks say of their places in them."""

from __future__ import annotations

from phalanx.diagnosis.groups import members_of_groups
from phalanx.model import Event, EventKind
from phalanx.sources.readers.watchdogs import GROUP


def _timed_out(rank: int, place: int, **more: int) -> Event:
    data = {"group": "13", "group_rank": place, **more}
    return Event(EventKind.TIMEOUT, "", "job.log", rank, rank, source="nccl-watchdog", data=data)


def test_two_places_and_the_size_tell_all_members() -> None:
    assert members_of_groups([_timed_out(8, 0, group_size=4), _timed_out(12, 2)]) == {"13": {8, 10, 12, 14}}


def test_without_a_size_only_places_up_to_the_last_known_one() -> None:
    assert members_of_groups([_timed_out(8, 0), _timed_out(10, 2)]) == {"13": {8, 9, 10}}


def test_one_place_or_uneven_distances_tell_nothing() -> None:
    assert not members_of_groups([_timed_out(8, 0, group_size=4)])
    assert not members_of_groups([_timed_out(8, 0), _timed_out(9, 1), _timed_out(12, 2)])


def test_what_a_group_says_when_it_is_made() -> None:
    made = [
        Event(EventKind.LINE, "", "job.log", 1, source=GROUP, data={"group": "13", "group_rank": place, "rank": rank})
        for place, rank in enumerate((1, 5))
    ]
    assert members_of_groups(made) == {"13": {1, 5}}
