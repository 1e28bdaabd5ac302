"""Who is to blame when all stand still, from stacks and recorders alone."""

from __future__ import annotations

import pytest

from phalanx.model import Frame
from phalanx.model.facts.stall import is_beyond_recorders
from phalanx.run.watch.partners import Partner
from phalanx.run.watch.rank_position import Doing, RankPosition
from phalanx.run.watch.recorder import GroupState, groups_of
from phalanx.run.watch.stall_verdict import judge_stall


def waits(rank: int, line: int = 88, call: str = "all_reduce") -> RankPosition:
    return RankPosition(rank, Doing.COLLECTIVE, call, Frame("/home/user/job/train.py", line, "train"))


def elsewhere(rank: int, line: int = 131) -> RankPosition:
    return RankPosition(rank, Doing.ELSEWHERE, "", Frame("/home/user/job/train.py", line, "evaluate"))


def recorder(*calls: tuple[str, int, str, bool]) -> dict[str, GroupState]:
    """(group, sequence number, operation, done)"""
    return groups_of(
        [
            {"process_group": [group, "desc"], "collective_seq_id": seq, "profiling_name": f"gloo:{op}", "retired": done, "state": "scheduled", "input_sizes": [[8]]}
            for group, seq, op, done in calls
        ]
    )  # fmt: skip


def test_the_one_that_is_elsewhere() -> None:
    made = RankPosition(
        2, Doing.ELSEWHERE, "", Frame("train.py", 131, "evaluate"), "if rank == 2", Frame("train.py", 131, "evaluate")
    )
    verdict = judge_stall({0: waits(0), 1: waits(1), 2: made, 3: waits(3)}, {}, 4)
    assert verdict.culprits == (2,)
    assert verdict.text == (
        "ranks 0, 1, 3 wait in all_reduce at train.py:88; rank 2 is in evaluate() at train.py:131, under `if rank == 2`"
    )


def test_rank_zero_is_not_innocent_by_being_first() -> None:
    positions = {0: waits(0, 40, "broadcast"), 1: waits(1), 2: waits(2)}
    recorders = {
        0: recorder(("0", 7, "broadcast", False)),
        1: recorder(("0", 7, "all_reduce", False)),
        2: recorder(("0", 7, "all_reduce", False)),
    }
    verdict = judge_stall(positions, recorders, 3)
    assert (verdict.culprits, verdict.reason) == ((0,), "mismatch")


def test_a_victim_of_another_group_is_not_accused() -> None:
    # 0 and 1 wait for 2 in the world's group; 2 waits in group 1 for 3, which is in neither
    positions = {0: waits(0), 1: waits(1), 2: waits(2, 95), 3: elsewhere(3)}
    recorders = {
        0: recorder(("0", 9, "all_reduce", False)),
        1: recorder(("0", 9, "all_reduce", False)),
        2: recorder(("0", 8, "all_reduce", True), ("1", 3, "all_gather", False)),
        3: recorder(("0", 8, "all_reduce", True), ("1", 2, "all_gather", True)),
    }
    verdict = judge_stall(positions, recorders, 4)
    assert (verdict.culprits, verdict.reason) == ((3,), "missing")


def test_all_in_the_same_collective_accuses_nobody() -> None:
    same = {rank: recorder(("0", 9, "all_reduce", False)) for rank in range(3)}
    verdict = judge_stall({rank: waits(rank) for rank in range(3)}, same, 3)
    assert verdict.culprits == ()
    assert verdict.text == "ranks 0, 1, 2 wait in all_reduce at train.py:88"


def test_ranks_held_up_on_the_way_are_not_accused() -> None:
    # 0 has left number 9 and waits in 10; 1 and 2 still wait in 9, which everybody has entered
    recorders = {
        0: recorder(("0", 9, "all_reduce", True), ("0", 10, "all_reduce", False)),
        1: recorder(("0", 9, "all_reduce", False)),
        2: recorder(("0", 9, "all_reduce", False)),
    }
    assert judge_stall({rank: waits(rank) for rank in range(3)}, recorders, 3).culprits == ()


@pytest.mark.parametrize("odd", [0, 2])
def test_a_tie_accuses_nobody(odd: int) -> None:
    positions = {rank: waits(rank, 40 if rank in (odd, 1) else 50) for rank in range(4)}
    assert judge_stall(positions, {}, 4).culprits == ()


def test_senders_and_receivers_wait_at_different_lines_by_nature() -> None:
    positions = {0: waits(0, 10, "send"), 1: waits(1, 20, "recv"), 2: waits(2, 20, "recv")}
    assert judge_stall(positions, {}, 3).culprits == ()


def test_a_stopped_and_an_ended_rank() -> None:
    stopped = RankPosition(1, Doing.STOPPED, pid=4242)
    verdict = judge_stall({0: waits(0), 1: stopped, 2: waits(2)}, {}, 3)
    assert (verdict.culprits, verdict.reason) == ((1,), "stopped")
    assert "kill -CONT 4242" in verdict.text
    ended = judge_stall({0: waits(0), 1: RankPosition(1, Doing.ENDED, code=0), 2: waits(2)}, {}, 3)
    assert (ended.culprits, ended.reason) == ((1,), "ended")
    left = judge_stall({0: waits(0), 1: RankPosition(1, Doing.ENDED, code=0, after="after step 24")}, {}, 2)
    assert "rank 1 has ended with status 0 after step 24" in left.text


def test_the_majority_is_never_accused() -> None:
    assert judge_stall({0: waits(0), 1: elsewhere(1), 2: elsewhere(2)}, {}, 3).culprits == ()


def aside(rank: int, line: int = 59, call: str = "global_mean") -> RankPosition:
    frame = Frame("/home/user/job/train.py", line, "<module>")
    return RankPosition(rank, Doing.COLLECTIVE, call, frame, f"if rank == {rank}", frame)


def test_who_came_alone_to_a_collective_under_its_own_condition_is_to_blame() -> None:
    verdict = judge_stall({0: aside(0), 1: elsewhere(1, 62)}, {}, 2)
    assert (verdict.culprits, verdict.reason) == ((0,), "alone")
    verdict = judge_stall({0: aside(0), 1: elsewhere(1), 2: elsewhere(2), 3: elsewhere(3)}, {}, 4)
    assert verdict.culprits == (0,)


def test_who_waits_on_the_common_path_did_not_come_alone() -> None:
    assert judge_stall({0: waits(0), 1: elsewhere(1)}, {}, 2).culprits == (1,)
    # most wait, under a condition that leaves one out: it is not they that went aside
    most = {rank: aside(rank) for rank in (0, 1, 3)}
    assert judge_stall({**most, 2: elsewhere(2)}, {}, 4).culprits == (2,)


def meets(rank: int, other: int, *, sends: bool = False, line: int = 30) -> RankPosition:
    frame = Frame("/home/user/job/train.py", line, "exchange")
    call = "send" if sends else "recv"
    under = f"if rank == {rank}"
    return RankPosition(rank, Doing.COLLECTIVE, call, frame, under, frame, partner=Partner(other, sends))


def test_a_circle_of_receives_accuses_nobody_and_names_both_lines() -> None:
    verdict = judge_stall({0: meets(0, 1, line=30), 1: meets(1, 0, line=41)}, {}, 2)
    assert (verdict.culprits, verdict.reason) == ((), "circle")
    assert "rank 0 waits in recv at train.py:30" in verdict.text
    assert "rank 1 waits in recv at train.py:41" in verdict.text
    assert verdict.text.endswith("in a circle: rank 0 receives from rank 1, which receives from rank 0")
    assert verdict.data["circles"] == [[0, 1]]


def test_a_circle_is_told_although_others_are_elsewhere() -> None:
    verdict = judge_stall({0: meets(0, 1), 1: meets(1, 0), 2: elsewhere(2)}, {}, 3)
    assert (verdict.culprits, verdict.reason) == ((), "circle")


def test_receivers_lead_to_the_one_that_does_not_send() -> None:
    # 2 and 3 have nothing to do with it, and wait for no rank
    verdict = judge_stall({0: meets(0, 1), 1: elsewhere(1), 2: elsewhere(2), 3: elsewhere(3)}, {}, 4)
    assert (verdict.culprits, verdict.reason) == ((1,), "missing")
    assert "rank 0 waits in recv from rank 1 at train.py:30" in verdict.text


def test_a_receiver_under_its_condition_did_not_come_alone() -> None:
    assert judge_stall({0: meets(0, 1), 1: elsewhere(1)}, {}, 2).culprits == (1,)


def test_who_has_left_its_script_and_does_not_end_while_the_others_ended_well() -> None:
    left = RankPosition(1, Doing.ELSEWHERE, "", Frame("train.py", 40, "drain"), leaving=True)
    ended = {rank: RankPosition(rank, Doing.ENDED, code=0) for rank in (0, 2)}
    verdict = judge_stall({1: left, **ended}, {}, 3)
    assert (verdict.culprits, verdict.reason) == ((1,), "leaving")
    assert verdict.text == (
        "ranks 0, 2 have ended with status 0; rank 1 has left the script and does not end: it waits for what runs in drain() at train.py:40"
    )
    assert judge_stall({1: left, 0: RankPosition(0, Doing.ENDED, code=1), 2: ended[2]}, {}, 3).culprits == ()


def test_who_has_met_its_peers_is_not_to_blame_that_others_have_not() -> None:
    starting = {
        rank: RankPosition(rank, Doing.CONNECT, "new_group", Frame("train.py", 35, "main")) for rank in (0, 2, 3)
    }
    verdict = judge_stall({1: waits(1), **starting}, {}, 4)
    assert (verdict.culprits, verdict.reason) == ((), "starting")
    assert is_beyond_recorders(verdict.fact(8.0))


def test_those_that_only_wait_in_one_of_two_calls_have_no_say() -> None:
    # 2 waits in a pair for 3, which waits with 0 and 1 for 2
    positions = {0: waits(0), 1: waits(1), 2: waits(2, 95), 3: waits(3)}
    pair = ("1", 1, "all_reduce", True)
    recorders = {rank: recorder(("0", 9, "all_reduce", False)) for rank in (0, 1)}
    recorders[2] = recorder(("0", 8, "all_reduce", True), pair, ("1", 2, "all_reduce", False))
    recorders[3] = recorder(pair, ("0", 9, "all_reduce", False))
    verdict = judge_stall(positions, recorders, 4)
    assert (verdict.culprits, verdict.reason) == ((), "nobody")
