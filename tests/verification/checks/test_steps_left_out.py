"""Steps that single ranks leave out."""

from __future__ import annotations

from phalanx.verification.checks.steps_left_out import check
from phalanx.verification.evidence import Evidence, RankEvidence
from tests.verification.made import Job, call


def left_out(job: Job, rank: int, *steps: int) -> Evidence:
    """The rank has no record of these steps; what comes after is numbered as if they had never been."""
    kept = []
    for record in job.evidence.ranks[rank].records:
        if record["k"] != "step":
            kept.append(record)
        elif record["n"] not in steps:
            kept.append({**record, "n": record["n"] - sum(1 for step in steps if step < record["n"])})
    ranks = {**job.evidence.ranks, rank: RankEvidence(rank, tuple(kept))}
    return Evidence(ranks, len(ranks))


def job(**fields: object) -> Job:
    return Job(steps=6, fields=lambda rank, step: {"made": step + 1}, **fields)  # type: ignore[arg-type]


def test_a_step_in_the_middle_that_only_one_rank_leaves_out() -> None:
    (found,) = check(left_out(job(), 1, 3))
    assert (found.cause, found.culprits) == ("skipped-steps-differ", (1,))
    assert "Rank 1 left out step 4" in found.headline


def test_all_ranks_take_the_same_steps() -> None:
    assert not list(check(job().evidence))


def test_a_rank_that_ends_earlier_has_no_more_data() -> None:
    assert not list(check(left_out(job(), 1, 4, 5)))


def test_ranks_that_average_their_weights_may_step_as_they_like() -> None:
    assert not list(check(left_out(job(events=lambda rank, step: [call("param")]), 1, 3)))
