"""Strategies for a job that hangs, where all ranks were seen at one moment."""

from __future__ import annotations

from phalanx.blame import About, Doing, GroupCall, Line, RankState, RankTable, accuse
from phalanx.blame.table import CONNECTING
from tests.blame.tables import dead, table


def call(group: str, seq: int | None, entered: int | None = None, op: str = "all_reduce") -> GroupCall:
    return GroupCall(group, seq, op if seq is not None else "", last_enqueued=entered if entered is not None else seq)


def waits(rank: int, *calls: GroupCall, line: int = 88) -> RankState:
    return RankState(rank, Doing.WAITING, calls, (Line("train.py", line),))


def exchange(rank: int, peer: int, way: str) -> RankState:
    return waits(rank, GroupCall(op="recv" if way == "from" else "send", peer=peer, facts={"way": way, "tag": "0"}))


def stall(*states: RankState, size: int | None = None) -> RankTable:
    return table(*states, about=About.STALL, size=size)


def test_the_end_of_a_chain_through_two_groups() -> None:
    """Rank 0 waits for rank 1 in one group, which waits for rank 2 in another; rank 2 waits for nobody."""
    states = (
        waits(0, call("a", 5)),
        waits(1, call("a", None, 4), call("b", 9)),
        RankState(2, Doing.RUNNING, (call("b", None, 8),), (Line("train.py", 12),)),
        waits(3, call("a", 5)),
    )
    found = accuse(stall(*states))
    assert (found.ranks, found.strategy) == ({2}, "wait-chain")


def test_who_is_in_a_call_that_all_entered_is_held_up() -> None:
    states = (waits(0, call("a", 5)), waits(1, call("a", None, 4), call("b", 9)), waits(2, call("b", 9)))
    assert not accuse(stall(*states)).ranks


def test_a_circle_of_receives_accuses_nobody() -> None:
    found = accuse(stall(exchange(0, 1, "from"), exchange(1, 0, "from"), RankState(2, Doing.RUNNING)))
    assert (found.ranks, found.strategy) == (frozenset(), "wait-cycle")


def test_a_send_and_its_receive_are_no_circle() -> None:
    assert accuse(stall(exchange(0, 1, "to"), exchange(1, 0, "from"))).strategy != "wait-cycle"


def test_the_peer_that_exchanges_end_at() -> None:
    found = accuse(stall(exchange(0, 2, "from"), exchange(1, 0, "from"), RankState(2, Doing.RUNNING), size=4))
    assert (found.ranks, found.strategy) == ({2}, "awaited-peer")


def test_who_has_met_its_peers_need_not_wait_for_those_that_have_not() -> None:
    connecting = [waits(rank, GroupCall(CONNECTING)) for rank in (1, 2)]
    assert accuse(stall(waits(0), *connecting)).strategy == "still-starting"
    alone = RankState(0, Doing.RUNNING)
    assert accuse(stall(alone, *connecting)).strategy == "outside"


def test_lines_say_nothing_where_ranks_wait_crosswise() -> None:
    first = [waits(rank, call("a", 5), call("b", None, 2)) for rank in (0, 1, 2)]
    second = waits(3, call("b", 3), call("a", None, 4), line=91)
    assert accuse(stall(*first, second)).strategy == "crosswise"


def test_the_one_at_another_line_where_all_wait() -> None:
    found = accuse(stall(waits(0), waits(1), waits(2, line=91)))
    assert (found.ranks, found.strategy) == ({2}, "other-line")
    assert not accuse(stall(waits(0), waits(1), waits(2, line=91), waits(3, line=91))).ranks  # a tie


def test_half_of_the_ranks_is_no_minority() -> None:
    running = [RankState(rank, Doing.RUNNING) for rank in (2, 3)]
    assert not accuse(stall(waits(0), waits(1), *running)).ranks
    assert accuse(stall(waits(0), running[0])).ranks == {2}


def test_who_is_gone_is_what_the_others_wait_for() -> None:
    assert accuse(stall(waits(0), waits(1), dead(2, 1))).ranks == {2}
    assert not accuse(stall(RankState(0, Doing.RUNNING), RankState(1, Doing.RUNNING), dead(2, 0))).ranks
