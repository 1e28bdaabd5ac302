"""Where a rank's own words are missing: who may be accused all the same, and who may not."""

from __future__ import annotations

from ..conftest import Diagnose
from .test_broken_off import SUMMARY
from .test_verdicts import CLOSED, trace

REFUSED = "Could not find the run 'base-large' in runs.toml\n"
STEPS = "".join(f"rank {rank} step {step} loss 0.5\n" for step in range(0, 50, 10) for rank in range(3))


def test_the_first_to_refuse_is_not_accused(diagnose: Diagnose) -> None:
    """No rank had trained, and nobody signed what is said: the launcher ended the others while they were about to say it, too."""
    verdict = diagnose({"job.log": REFUSED + SUMMARY.format(first=1, other="-15", how="")}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == ()


def test_who_leaves_in_the_middle_of_the_training_is_accused(diagnose: Diagnose) -> None:
    verdict = diagnose({"job.log": STEPS + SUMMARY.format(first=7, other="-15", how="")}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)


def test_a_guard_that_stops_all_ranks_is_no_rank_that_left(diagnose: Diagnose) -> None:
    """`sys.exit` after a sentence of the script's own, as many training scripts have it."""
    log = "step 0 loss 0.5\nstep 1 loss 7e+30\nLoss is nan, stopping training\nLoss is nan, stopping training\n"
    verdict = diagnose({"job.log": log + SUMMARY.format(first=1, other="-15", how="")}).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("perf.non-convergence", ())


def test_damaged_memory_is_that_of_the_rank_that_aborted(diagnose: Diagnose) -> None:
    """glibc does not say in which rank."""
    ends = SUMMARY.format(first=-6, other="-15", how="  (SIGABRT)")
    verdict = diagnose({"job.log": STEPS + "free(): invalid pointer\n" + ends}).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("fail.memory-issue", (1,))


def test_a_rank_that_aborts_without_words(diagnose: Diagnose) -> None:
    verdict = diagnose({"job.log": STEPS + SUMMARY.format(first=-6, other="-15", how="  (SIGABRT)")}).verdict
    assert verdict is not None
    assert (verdict.culprit_ranks, verdict.shown_fixes) == ((1,), ())


def test_of_two_ranks_the_one_that_got_more_than_it_asked_for_is_not_accused(diagnose: Diagnose) -> None:
    """Gloo aborts the receiver, whoever asked for the wrong size."""
    enforce = "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at /x/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 20 vs 12. \n"
    of_two = SUMMARY.format(first=-6, other="-15", how="  (SIGABRT)").replace("  rank      : 2 (local_rank: 2)\n", "")
    talk = STEPS.replace("rank 2", "rank 1")
    verdict = diagnose({"job.log": talk + enforce + of_two}).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("fail.communication-error", ())


def test_shared_memory_belongs_to_all_ranks_of_a_host(diagnose: Diagnose) -> None:
    full = "RuntimeError: unable to allocate shared memory(shm) for file </torch_28_29_0>: No space left on device (28)"
    logs = {
        "rank0.log": trace(9, "for x in loader:", full),
        "rank1.log": trace(11, "loss.backward()", CLOSED.format(port=1)),
    }
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("fail.memory-issue", ())
