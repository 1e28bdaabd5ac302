"""An alias stands for a rank only where lines say so and agree."""

from __future__ import annotations

from phalanx.blame.identity import Alias, Identities


def test_a_process_id_that_two_hosts_use_stands_for_nobody() -> None:
    known = Identities.of([(Alias.PID, "4242", 1), (Alias.PID, "4243", 2), (Alias.PID, "4242", 5)])
    assert known.rank(Alias.PID, "4243") == 2
    assert known.rank(Alias.PID, "4242") is None


def test_kinds_of_names_are_kept_apart() -> None:
    known = Identities.of([(Alias.LOCAL, "node1:3", 11)])
    assert known.rank(Alias.LOCAL, "node1:3") == 11
    assert known.rank(Alias.DEVICE, "node1:3") is None
    assert known.rank(Alias.LOCAL, "node0:3") is None


def test_several_names_in_a_line_have_to_mean_one_rank() -> None:
    known = Identities.of([(Alias.POD, "job-worker-1", 1), (Alias.POD, "job-worker-2", 2)])
    assert known.rank_of_any(Alias.POD, ["job-worker-1", "other"]) == 1
    assert known.rank_of_any(Alias.POD, ["job-worker-1", "job-worker-2"]) is None
