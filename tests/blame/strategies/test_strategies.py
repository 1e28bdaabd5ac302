"""Each strategy accuses on its own evidence, and holds back in a tie or where the evidence may be missing."""

from __future__ import annotations

from phalanx.blame import About, Doing, GroupCall, Line, RankState, Words, accuse
from tests.blame.tables import dead, table, waiting

AT_88 = (Line("train.py", 10, "main"), Line("train.py", 88, "train"))
AT_91 = (Line("train.py", 10, "main"), Line("train.py", 91, "train"))


def test_named_ranks_are_accused_if_they_are_few() -> None:
    judged = table(waiting(0), waiting(1), waiting(2), waiting(3), named=(frozenset({2}),))
    assert accuse(judged).strategy == "named"
    assert accuse(judged).ranks == {2}
    assert not accuse(table(waiting(0), size=4, named=(frozenset({2, 3}),))).ranks


def test_of_several_reports_those_that_the_fewest_are_missed_with() -> None:
    judged = table(size=4, named=(frozenset({1, 2, 3}), frozenset({2})))
    assert accuse(judged).ranks == {2}
    assert not accuse(table(size=4, named=(frozenset({1, 0}), frozenset({2, 3})))).ranks


def test_a_stopped_rank() -> None:
    assert accuse(table(waiting(0), RankState(1, Doing.STOPPED))).strategy == "stopped"


def test_a_call_under_a_rank_condition_while_the_others_went_on() -> None:
    alone = waiting(0, condition="if rank == 0", stack=AT_88)
    others = [RankState(rank, Doing.RUNNING, stack=AT_91) for rank in (1, 2, 3)]
    assert accuse(table(alone, *others)).strategy == "came-alone"
    receives = waiting(0, condition="if rank == 0", peer=1)
    assert accuse(table(receives, *others)).strategy != "came-alone"


def test_who_died_by_itself_and_not_who_reports_a_lost_peer() -> None:
    victim = dead(1, 1, words=Words.VICTIM)
    found = accuse(table(waiting(0), victim, dead(2, -11), waiting(3)))
    assert (found.ranks, found.strategy) == ({2}, "died-first")
    assert not accuse(table(waiting(0), victim, waiting(2))).ranks


def test_the_first_wave_of_deaths() -> None:
    found = accuse(table(waiting(0), waiting(1), waiting(4), dead(2, 1, at=100.0), dead(3, 1, at=110.0)))
    assert found.ranks == {2}


def test_a_status_of_one_says_nothing_where_calls_differ() -> None:
    judged = table(waiting(0), waiting(1), dead(2, 1), about=About.CALLS)
    assert not accuse(judged).ranks


def test_who_left_with_success_while_others_wait() -> None:
    assert accuse(table(waiting(0), waiting(1), dead(2, 0, own=False))).strategy == "left-early"


def test_another_operation_as_the_same_number() -> None:
    calls = [waiting(rank, 39, op="barrier" if rank == 2 else "all_reduce") for rank in range(4)]
    found = accuse(table(*calls, about=About.CALLS))
    assert (found.ranks, found.strategy) == ({2}, "other-call")
    assert "barrier" in found.because
    assert not accuse(table(*calls[1:3], about=About.CALLS)).ranks  # a tie


def test_the_one_unknown_call_where_calls_certainly_differ() -> None:
    calls = [waiting(rank, 39, sizes="[4]") for rank in range(3)]
    assert accuse(table(*calls, size=4, about=About.CALLS, calls_differ=True)).ranks == {3}
    assert not accuse(table(*calls, size=4, about=About.CALLS)).ranks


def test_a_lower_number_within_one_group_only() -> None:
    ranks = [waiting(0, 812), waiting(1, 812), waiting(2, 811), waiting(3, 812)]
    assert accuse(table(*ranks)).strategy == "behind"
    assert accuse(table(*ranks)).ranks == {2}
    other_groups = [waiting(0, 812, group="a"), waiting(1, 811, group="b")]
    assert not accuse(table(*other_groups)).ranks


def test_of_a_pair_the_one_with_fewer_calls() -> None:
    assert accuse(table(waiting(0, 5), waiting(1, 6))).ranks == {0}


def test_a_tie_of_numbers_accuses_nobody() -> None:
    assert not accuse(table(waiting(0, 5), waiting(1, 5), waiting(2, 6), waiting(3, 6))).ranks


def test_a_rank_in_its_own_code_while_the_others_wait() -> None:
    found = accuse(table(waiting(0), waiting(1), RankState(2, Doing.RUNNING, stack=AT_91)))
    assert (found.ranks, found.strategy) == ({2}, "outside")
    assert "train.py:91" in found.because


def test_two_stacks_of_a_pair_are_enough() -> None:
    assert accuse(table(waiting(0, stack=AT_88), RankState(1, Doing.DATA, stack=AT_91))).ranks == {1}


def test_another_line_than_most() -> None:
    stood = [waiting(rank, stack=AT_91 if rank == 3 else AT_88) for rank in range(4)]
    assert accuse(table(*stood)).strategy == "other-line"
    assert accuse(table(*stood)).ranks == {3}
    assert not accuse(table(*stood[2:])).ranks


def test_the_source_tells_which_of_two_went_aside() -> None:
    stood = [waiting(0, stack=AT_91, condition="if rank == 0"), waiting(1, stack=AT_88)]
    assert accuse(table(*stood, about=About.CALLS)).strategy == "rank-condition"


def test_fifteen_watchdogs_of_sixteen() -> None:
    stood = [waiting(rank, 48213, op="ALLREDUCE") for rank in range(16) if rank != 5]
    found = accuse(table(*stood, size=16, covered=True))
    assert (found.ranks, found.strategy) == ({5}, "never-joined")
    assert not accuse(table(*stood, size=16)).ranks  # an excerpt shows nothing by what it lacks


def test_a_rank_that_went_quiet_while_all_others_waited() -> None:
    stood = [waiting(rank) for rank in range(3)]
    assert accuse(table(*stood, RankState(3), covered=True)).ranks == {3}
    assert not accuse(table(*stood, RankState(3))).ranks


def test_who_still_called_when_all_others_had_ended_well() -> None:
    ended = [dead(rank, 0, own=False) for rank in (1, 2, 3)]
    found = accuse(table(waiting(0), *ended))
    assert (found.ranks, found.strategy) == ({0}, "outlasted")


def test_a_rank_that_stopped_steps_earlier() -> None:
    stood = [RankState(rank, last_step=25 if rank == 2 else 30) for rank in range(4)]
    assert accuse(table(*stood)).ranks == {2}


def test_one_step_behind_counts_only_for_one_rank_of_a_silent_job() -> None:
    stood = [RankState(rank, last_step=30 - (rank == 2)) for rank in range(4)]
    assert accuse(table(*stood)).ranks == {2}
    assert not accuse(table(*stood, size=5)).ranks
    assert not accuse(table(*[waiting(rank, last_step=30 - (rank == 2)) for rank in range(4)])).ranks


def test_who_waits_beside_the_steps_may_have_called_alone() -> None:
    evaluating = (Line("train.py", 40, "evaluate"),)
    for function, step, accused in ((evaluating, 12, set()), (AT_88, 12, {1}), (evaluating, 9, {1})):
        judged = table(waiting(0, stack=function, last_step=12), RankState(1, last_step=step), named=(frozenset({1}),))
        assert accuse(judged).ranks == accused


def test_whom_a_report_names_may_be_half_of_all() -> None:
    judged = table(*[RankState(rank) for rank in range(4)], about=About.NAMED, named=(frozenset({2, 3}),))
    assert accuse(judged).ranks == {2, 3}
    assert not accuse(table(*judged.states.values(), named=(frozenset({2, 3}),), shown_by={0, 1})).ranks


def test_an_exception_of_one_rank_while_the_others_speak_of_something_else() -> None:
    shown = RankState(2, Doing.GONE, words=Words.OWN)
    others = [RankState(rank, Doing.GONE, words=Words.VICTIM) for rank in (0, 1)]
    found = accuse(table(shown, *others, about=About.OWN, shown_by={2}))
    assert (found.ranks, found.strategy) == ({2}, "own-fault")


def test_an_exception_accuses_nobody_where_the_others_words_may_be_missing() -> None:
    shown, mute = RankState(2, Doing.GONE, words=Words.OWN), RankState(0)
    assert not accuse(table(shown, mute, about=About.OWN, shown_by={2})).ranks
    assert accuse(table(shown, mute, about=About.OWN, shown_by={2}, covered=True)).ranks == {2}
    cut = RankState(0, words=Words.CUT)
    assert not accuse(table(shown, cut, about=About.OWN, shown_by={2}, covered=True)).ranks


def test_an_exception_on_several_ranks_with_the_rest_ended_early_is_everybodys() -> None:
    shown = [RankState(rank, Doing.GONE, words=Words.OWN) for rank in (0, 1)]
    early = RankState(2, Doing.GONE)
    assert not accuse(table(*shown, early, about=About.OWN, shown_by={0, 1}, covered=True)).ranks
    all_of_them = table(*shown, about=About.OWN, shown_by={0, 1}, covered=True)
    assert not accuse(all_of_them).ranks


def test_a_fault_that_every_rank_meets_is_not_the_first_ranks() -> None:
    judged = table(
        RankState(0, words=Words.OWN), RankState(1), about=About.OWN, shown_by={0}, covered=True, is_shared=True
    )
    assert not accuse(judged).ranks


def test_point_to_point_calls_differ_by_nature() -> None:
    ends = [
        RankState(rank, Doing.WAITING, (GroupCall("0", 3, op, peer=1 - rank),))
        for rank, op in enumerate(("send", "recv"))
    ]
    assert not accuse(table(*ends, about=About.CALLS)).ranks


def test_who_raised_by_itself_while_the_others_lost_it() -> None:
    own = RankState(2, Doing.GONE, words=Words.OWN)
    found = accuse(table(waiting(0), waiting(1), own))
    assert (found.ranks, found.strategy) == ({2}, "raised")


def test_ranks_that_were_taken_down_with_one_that_failed_are_not_missed() -> None:
    stood = [waiting(rank) for rank in range(6)] + [RankState(6, words=Words.OWN), RankState(8, words=Words.OWN)]
    judged = table(*stood, size=9, covered=True)
    assert 7 not in accuse(judged, without=frozenset({"raised"})).ranks


def test_numbers_without_a_group_accuse_one_rank_only() -> None:
    ranks = [waiting(rank, 812 + (rank > 4), group="?") for rank in range(7)]
    assert not accuse(table(*ranks)).ranks
    assert accuse(table(*ranks[:6])).ranks == {5}


def test_who_is_missing_from_the_group_that_all_chains_of_waiting_end_at() -> None:
    """Rank 3 never came to its tensor group; rank 2 waits there, and so does not come to its data group."""
    members = {"tensor": frozenset({2, 3}), "data": frozenset({0, 2, 4})}
    waits = (waiting(0, 7, group="data"), waiting(2, 9, group="tensor"), waiting(4, 7, group="data"))
    found = accuse(table(*waits, size=6, covered=True, members=members))
    assert (found.ranks, found.strategy) == ({3}, "wait-chain")
    assert not accuse(table(*waits, size=6, members=members)).ranks, "of an excerpt rank 3 may be missing"


def test_numbers_of_sends_and_receives_are_not_compared() -> None:
    waits = (waiting(0, 7, op="SEND"), waiting(1, 9, op="RECV"), waiting(2, 9, op="RECV"))
    assert not accuse(table(*waits, covered=True)).ranks
