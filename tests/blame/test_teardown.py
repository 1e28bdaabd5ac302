"""What ended a process tells whether it ended by itself."""

from __future__ import annotations

from phalanx.blame.teardown import Exit, killed_by_launcher, own_endings


def test_a_signal_from_outside_is_nobodys_own_end() -> None:
    assert own_endings({0: Exit(-15), 1: Exit(1), 2: Exit(0), 3: Exit(-2)}) == {1}


def test_a_kill_of_one_rank_counts_and_a_kill_of_all_does_not() -> None:
    assert own_endings({0: Exit(1), 1: Exit(-9)}) == {0, 1}
    assert own_endings({0: Exit(-9), 1: Exit(-9)}) == frozenset()


def test_a_kill_after_a_time_out_is_the_clean_up() -> None:
    assert own_endings({0: Exit(1), 1: Exit(-9)}, waited=True) == {0}


def test_a_kill_long_after_the_first_failure_is_the_launchers() -> None:
    exits = {0: Exit(1, at=100.0), 1: Exit(-9, at=130.0)}
    assert killed_by_launcher(exits) == {1}
    assert own_endings(exits) == {0}
    assert killed_by_launcher({0: Exit(1, at=100.0), 1: Exit(-9, at=101.0)}) == frozenset()


def test_an_abort_that_a_watchdog_announced_or_that_several_share_is_no_death_of_its_own() -> None:
    assert own_endings({0: Exit(-6), 1: Exit(1)}) == {0, 1}
    assert own_endings({0: Exit(-6), 1: Exit(1)}, announced=True) == {1}
    assert own_endings({0: Exit(-6), 1: Exit(-6), 2: Exit(-11)}) == {2}


def test_a_supervisor_knows_whom_it_ended() -> None:
    assert own_endings({0: Exit(-9), 1: Exit(-9, by="phalanx run"), 2: Exit(0)}, supervised=True) == {0}
