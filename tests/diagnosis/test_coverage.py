"""Whose silence means something: absence accuses only where the evidence would have shown the rank."""

from __future__ import annotations

from ..conftest import Diagnose

STEPS = "world size 4\n" + "".join(f"[rank0]: step {step} loss 0.5\n" for step in range(0, 50, 10))
WAITED = "[rank{0}]:[E321 02:07:08.4 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n"


def watchdogs(*ranks: int) -> str:
    return "".join(WAITED.format(rank) for rank in ranks)


def accused(diagnose: Diagnose, files: dict[str, str]) -> tuple[int, ...]:
    return next(found.culprit_ranks for found in diagnose(dict(files)).findings if found.symptom == "perf.hang")


def test_a_whole_log_shows_who_is_not_in_it(diagnose: Diagnose) -> None:
    assert accused(diagnose, {"job.log": STEPS + watchdogs(0, 1, 3)}) == (2,)


def test_an_excerpt_shows_nobody_by_what_it_lacks(diagnose: Diagnose) -> None:
    assert accused(diagnose, {"job.log": watchdogs(0, 1, 3)}) == ()
    assert accused(diagnose, {"job.log": watchdogs(0, 2, 3, 4)}) == ()


def test_an_excerpt_with_all_ranks_but_one_was_not_made_rank_by_rank(diagnose: Diagnose) -> None:
    assert accused(diagnose, {"job.log": watchdogs(*(rank for rank in range(16) if rank != 5))}) == (5,)


def test_the_highest_number_seen_is_not_the_size_of_the_job(diagnose: Diagnose) -> None:
    """Ranks 0 to 6 of eight or more: nobody knows of rank 7."""
    assert accused(diagnose, {"job.log": watchdogs(*range(7))}) == ()


def test_a_log_with_lines_left_out_shows_nobody(diagnose: Diagnose) -> None:
    cut = STEPS + "... 812 lines omitted ...\n"
    assert accused(diagnose, {"job.log": cut + watchdogs(0, 1, 3)}) == ()


def test_a_file_for_each_rank_shows_who_said_nothing(diagnose: Diagnose) -> None:
    files = {f"rank{rank}.log": watchdogs(rank) if rank != 2 else "step 40 loss 0.5\n" for rank in range(4)}
    assert accused(diagnose, files) == (2,)


def test_the_agent_counts_the_rank_that_nobody_hears_of(diagnose: Diagnose) -> None:
    """Three of four time out, torchrun ends the fourth: its lines and its summary name four processes."""
    watchdog = "[rank{0}]:[E805 12:00:10.1 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=48, OpType=ALLREDUCE, NumelIn=25, NumelOut=25, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n"
    closing = "W0805 12:00:14.0 6990 torch/distributed/elastic/multiprocessing/api.py:908] Sending process 7003 closing signal SIGTERM\n"
    agent = "E0805 12:00:15.0 6990 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: -6) local_rank: 0 (pid: 7000) of binary: python\n"
    entry = "[{1}]:\n  time      : 2026-08-05_12:00:15\n  host      : node1\n  rank      : {0} (local_rank: {0})\n  exitcode  : -6 (pid: 700{0})\n"
    shown = "".join(watchdog.format(rank) for rank in range(3))
    listed = "".join(entry.format(rank, rank) for rank in (1, 2, 0))
    verdict = diagnose({"job.log": shown + closing + agent + listed}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (3,)
    verdict = diagnose({"job.log": shown + agent + listed}).verdict  # nobody was left to be ended
    assert verdict is not None
    assert verdict.culprit_ranks == ()
