"""Who is to blame when all stand still, from stacks and recorders alone."""

from __future__ import annotations

import pytest

from phalanx.model import Frame
from phalanx.model.facts.stall import is_beyond_recorders
from phalanx.run.watch.partners import Partner
from phalanx.run.watch.recorder import GroupState, groups_of
from phalanx.run.watch.standing import Doing, Standing
from phalanx.run.watch.waiting import picture_of


def waits(rank: int, line: int = 88, call: str = "all_reduce") -> Standing:
    return Standing(rank, Doing.COLLECTIVE, call, Frame("/home/user/job/train.py", line, "train"))


def elsewhere(rank: int, line: int = 131) -> Standing:
    return Standing(rank, Doing.ELSEWHERE, "", Frame("/home/user/job/train.py", line, "evaluate"))


def recorder(*calls: tuple[str, int, str, bool]) -> dict[str, GroupState]:
    """(group, sequence number, operation, done)"""
    return groups_of(
        [
            {"process_group": [group, "desc"], "collective_seq_id": seq, "profiling_name": f"gloo:{op}", "retired": done, "state": "scheduled", "input_sizes": [[8]]}
            for group, seq, op, done in calls
        ]
    )  # fmt: skip


def test_the_one_that_is_elsewhere() -> None:
    made = Standing(
        2, Doing.ELSEWHERE, "", Frame("train.py", 131, "evaluate"), "if rank == 2", Frame("train.py", 131, "evaluate")
    )
    picture = picture_of({0: waits(0), 1: waits(1), 2: made, 3: waits(3)}, {}, 4)
    assert picture.culprits == (2,)
    assert picture.text == (
        "ranks 0, 1, 3 wait in all_reduce at train.py:88; rank 2 is in evaluate() at train.py:131, under `if rank == 2`"
    )


def test_rank_zero_is_not_innocent_by_being_first() -> None:
    standings = {0: waits(0, 40, "broadcast"), 1: waits(1), 2: waits(2)}
    recorders = {
        0: recorder(("0", 7, "broadcast", False)),
        1: recorder(("0", 7, "all_reduce", False)),
        2: recorder(("0", 7, "all_reduce", False)),
    }
    picture = picture_of(standings, recorders, 3)
    assert (picture.culprits, picture.reason) == ((0,), "mismatch")


def test_a_victim_of_another_group_is_not_accused() -> None:
    # 0 and 1 wait for 2 in the world's group; 2 waits in group 1 for 3, which is in neither
    standings = {0: waits(0), 1: waits(1), 2: waits(2, 95), 3: elsewhere(3)}
    recorders = {
        0: recorder(("0", 9, "all_reduce", False)),
        1: recorder(("0", 9, "all_reduce", False)),
        2: recorder(("0", 8, "all_reduce", True), ("1", 3, "all_gather", False)),
        3: recorder(("0", 8, "all_reduce", True), ("1", 2, "all_gather", True)),
    }
    picture = picture_of(standings, recorders, 4)
    assert (picture.culprits, picture.reason) == ((3,), "missing")


def test_all_in_the_same_collective_accuses_nobody() -> None:
    same = {rank: recorder(("0", 9, "all_reduce", False)) for rank in range(3)}
    picture = picture_of({rank: waits(rank) for rank in range(3)}, same, 3)
    assert picture.culprits == ()
    assert picture.text == "ranks 0, 1, 2 wait in all_reduce at train.py:88"


def test_ranks_held_up_on_the_way_are_not_accused() -> None:
    # 0 has left number 9 and waits in 10; 1 and 2 still wait in 9, which everybody has entered
    recorders = {
        0: recorder(("0", 9, "all_reduce", True), ("0", 10, "all_reduce", False)),
        1: recorder(("0", 9, "all_reduce", False)),
        2: recorder(("0", 9, "all_reduce", False)),
    }
    assert picture_of({rank: waits(rank) for rank in range(3)}, recorders, 3).culprits == ()


@pytest.mark.parametrize("odd", [0, 2])
def test_a_tie_accuses_nobody(odd: int) -> None:
    standings = {rank: waits(rank, 40 if rank in (odd, 1) else 50) for rank in range(4)}
    assert picture_of(standings, {}, 4).culprits == ()


def test_senders_and_receivers_wait_at_different_lines_by_nature() -> None:
    standings = {0: waits(0, 10, "send"), 1: waits(1, 20, "recv"), 2: waits(2, 20, "recv")}
    assert picture_of(standings, {}, 3).culprits == ()


def test_a_stopped_and_an_ended_rank() -> None:
    stopped = Standing(1, Doing.STOPPED, pid=4242)
    picture = picture_of({0: waits(0), 1: stopped, 2: waits(2)}, {}, 3)
    assert (picture.culprits, picture.reason) == ((1,), "stopped")
    assert "kill -CONT 4242" in picture.text
    ended = picture_of({0: waits(0), 1: Standing(1, Doing.ENDED, code=0), 2: waits(2)}, {}, 3)
    assert (ended.culprits, ended.reason) == ((1,), "ended")


def test_the_majority_is_never_accused() -> None:
    assert picture_of({0: waits(0), 1: elsewhere(1), 2: elsewhere(2)}, {}, 3).culprits == ()


def aside(rank: int, line: int = 59, call: str = "global_mean") -> Standing:
    frame = Frame("/home/user/job/train.py", line, "<module>")
    return Standing(rank, Doing.COLLECTIVE, call, frame, f"if rank == {rank}", frame)


def test_who_came_alone_to_a_collective_under_its_own_condition_is_to_blame() -> None:
    picture = picture_of({0: aside(0), 1: elsewhere(1, 62)}, {}, 2)
    assert (picture.culprits, picture.reason) == ((0,), "alone")
    picture = picture_of({0: aside(0), 1: elsewhere(1), 2: elsewhere(2), 3: elsewhere(3)}, {}, 4)
    assert picture.culprits == (0,)


def test_who_waits_on_the_common_path_did_not_come_alone() -> None:
    assert picture_of({0: waits(0), 1: elsewhere(1)}, {}, 2).culprits == (1,)
    # most wait, under a condition that leaves one out: it is not they that went aside
    most = {rank: aside(rank) for rank in (0, 1, 3)}
    assert picture_of({**most, 2: elsewhere(2)}, {}, 4).culprits == (2,)


def meets(rank: int, other: int, *, sends: bool = False, line: int = 30) -> Standing:
    frame = Frame("/home/user/job/train.py", line, "exchange")
    call = "send" if sends else "recv"
    under = f"if rank == {rank}"
    return Standing(rank, Doing.COLLECTIVE, call, frame, under, frame, partner=Partner(other, sends))


def test_a_circle_of_receives_accuses_nobody_and_names_both_lines() -> None:
    picture = picture_of({0: meets(0, 1, line=30), 1: meets(1, 0, line=41)}, {}, 2)
    assert (picture.culprits, picture.reason) == ((), "circle")
    assert "rank 0 waits in recv at train.py:30" in picture.text
    assert "rank 1 waits in recv at train.py:41" in picture.text
    assert picture.text.endswith("in a circle: rank 0 receives from rank 1, which receives from rank 0")
    assert picture.data["circles"] == [[0, 1]]


def test_a_circle_is_told_although_others_are_elsewhere() -> None:
    picture = picture_of({0: meets(0, 1), 1: meets(1, 0), 2: elsewhere(2)}, {}, 3)
    assert (picture.culprits, picture.reason) == ((), "circle")


def test_receivers_lead_to_the_one_that_does_not_send() -> None:
    # 2 and 3 have nothing to do with it, and wait for no rank
    picture = picture_of({0: meets(0, 1), 1: elsewhere(1), 2: elsewhere(2), 3: elsewhere(3)}, {}, 4)
    assert (picture.culprits, picture.reason) == ((1,), "missing")
    assert "rank 0 waits in recv from rank 1 at train.py:30" in picture.text


def test_a_receiver_under_its_condition_did_not_come_alone() -> None:
    assert picture_of({0: meets(0, 1), 1: elsewhere(1)}, {}, 2).culprits == (1,)


def test_who_has_left_its_script_and_does_not_end_while_the_others_ended_well() -> None:
    left = Standing(1, Doing.ELSEWHERE, "", Frame("train.py", 40, "drain"), leaving=True)
    ended = {rank: Standing(rank, Doing.ENDED, code=0) for rank in (0, 2)}
    picture = picture_of({1: left, **ended}, {}, 3)
    assert (picture.culprits, picture.reason) == ((1,), "leaving")
    assert picture.text == (
        "ranks 0, 2 have ended with status 0; rank 1 has left the script and does not end: it waits for what runs in drain() at train.py:40"
    )
    assert picture_of({1: left, 0: Standing(0, Doing.ENDED, code=1), 2: ended[2]}, {}, 3).culprits == ()


def test_who_has_met_its_peers_is_not_to_blame_that_others_have_not() -> None:
    starting = {rank: Standing(rank, Doing.CONNECT, "new_group", Frame("train.py", 35, "main")) for rank in (0, 2, 3)}
    picture = picture_of({1: waits(1), **starting}, {}, 4)
    assert (picture.culprits, picture.reason) == ((), "starting")
    assert is_beyond_recorders(picture.fact(8.0))


def test_those_that_only_wait_in_one_of_two_calls_have_no_say() -> None:
    # 2 waits in a pair for 3, which waits with 0 and 1 for 2
    standings = {0: waits(0), 1: waits(1), 2: waits(2, 95), 3: waits(3)}
    pair = ("1", 1, "all_reduce", True)
    recorders = {rank: recorder(("0", 9, "all_reduce", False)) for rank in (0, 1)}
    recorders[2] = recorder(("0", 8, "all_reduce", True), pair, ("1", 2, "all_reduce", False))
    recorders[3] = recorder(pair, ("0", 9, "all_reduce", False))
    picture = picture_of(standings, recorders, 4)
    assert (picture.culprits, picture.reason) == ((), "nobody")
