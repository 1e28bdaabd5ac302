"""Logs that end within a traceback, before the exception is named."""

from __future__ import annotations

from ..conftest import Diagnose
from .test_verdicts import steps, trace

BACKWARD = """[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/user/job/train.py", line 24, in main
[rank0]:     loss.backward()
[rank0]:   File "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 979, in _engine_run_backward
[rank0]:     return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass
"""
LAYER = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/user/job/train.py", line 20, in <module>
[rank1]:     out = model(x)
[rank1]:   File "/home/user/job/net.py", line 8, in forward
[rank1]:     return self.head(x)
"""
TALK = "".join(f"rank {rank} step {step} loss 0.3\n" for step in range(5) for rank in range(3))


def test_the_first_of_a_common_log_is_not_accused(diagnose: Diagnose) -> None:
    for text, symptom in ((BACKWARD, "fail.communication-error"), (LAYER, "fail.other")):
        verdict = diagnose({"job.log": TALK + text}).verdict
        assert verdict is not None
        assert (verdict.symptom, verdict.culprit_ranks) == (symptom, ())


def test_the_same_log_with_its_end_accuses(diagnose: Diagnose) -> None:
    verdict = diagnose({"job.log": TALK + LAYER + "[rank1]: KeyError: 'head'\n"}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)


def test_silence_beside_a_traceback_that_is_cut_off_accuses_nobody(diagnose: Diagnose) -> None:
    cut = steps(40) + trace(60, "dist.all_reduce(x)", "RuntimeError: x").rsplit("RuntimeError", 1)[0]
    verdict = diagnose({"rank0.log": steps(40), "rank1.log": cut, "rank2.log": cut}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == ()


SUMMARY = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-16_00:16:37
  host      : localhost
  rank      : 2 (local_rank: 2)
  exitcode  : {other} (pid: 102)
  error_file: <N/A>
[2]:
  time      : 2026-11-16_00:16:37
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : {other} (pid: 100)
  error_file: <N/A>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-16_00:16:37
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : {first} (pid: 101){how}
  error_file: <N/A>
============================================================
"""


def test_several_ranks_that_ended_without_words_accuse_nobody(diagnose: Diagnose) -> None:
    """Only the end of the log is left: their exceptions stood above, and may be those of victims."""
    verdict = diagnose({"job.log": SUMMARY.format(first=1, other=1, how="")}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == ()
    verdict = diagnose({"job.log": SUMMARY.format(first=1, other="-15", how="")}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)


def test_a_log_below_vague_words_is_judged_as_a_log(diagnose: Diagnose) -> None:
    lost = "[rank0]: RuntimeError: [/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:39052\n"
    log = TALK + lost + SUMMARY.format(first="-11", other="-15", how="  (SIGSEGV)")
    post = f"# My job does not work\n\nHi, I start it on our cluster and get this:\n\n```\n{log}```\n\nAny help is appreciated.\n"
    for file, text in (("job.log", log), ("post.md", post)):
        verdict = diagnose({file: text}).verdict
        assert verdict is not None
        assert (verdict.symptom, verdict.culprit_ranks) == ("fail.segmentation-fault", (1,)), file


def test_a_whole_exception_decides_beside_one_cut_off_in_an_exchange(diagnose: Diagnose) -> None:
    """Who stood in the backward pass, at another line, had lost the rank that raised."""
    whole = "".join(
        f"[rank2]: {line}\n" for line in trace(31, "check(batch)", "ValueError: the table is odd").splitlines()
    )
    verdict = diagnose({"job.log": TALK + whole + BACKWARD}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (2,)
    assert "the table is odd" in verdict.summary


def test_a_whole_exception_beside_one_cut_off_at_the_same_line_or_in_own_work(diagnose: Diagnose) -> None:
    whole = "".join(
        f"[rank2]: {line}\n" for line in trace(24, "loss.backward()", "ValueError: the table is odd").splitlines()
    )
    for cut in (BACKWARD, LAYER):
        verdict = diagnose({"job.log": TALK + whole + cut}).verdict
        assert verdict is not None
        assert verdict.culprit_ranks == ()
