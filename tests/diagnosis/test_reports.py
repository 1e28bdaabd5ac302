"""A bug report is judged by what programs printed in it, as an excerpt: people's own words decide nothing."""

from __future__ import annotations

import pytest

from tests.conftest import Diagnose

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def test_words_around_the_output_change_nothing(diagnose: Diagnose) -> None:
    plain = diagnose({"job.log": f"[rank1]: {OOM}\n".encode()}).verdict
    told = "# Training hangs for ever\n\nNCCL deadlocks, the loss is NaN and it is slow.\n\n"
    pasted = diagnose({"issue.md": f"{told}```\n[rank1]: {OOM}\n```\n".encode()}).verdict
    assert plain is not None
    assert pasted is not None
    assert (pasted.symptom, pasted.rule) == (plain.symptom, plain.rule)
    assert pasted.evidence[0].line == 6


@pytest.mark.parametrize("name", ["issue.md", "question.txt"])
def test_without_output_it_says_what_to_collect(diagnose: Diagnose, name: str) -> None:
    text = "My PyTorch DDP training with NCCL runs out of memory and then hangs on four GPUs.\n"
    report = diagnose({name: text.encode()})
    assert report.verdict is None
    assert report.without_output == (name,)
    (item,) = report.not_checked
    assert "no output of a program" in item.what
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" in item.needs
    assert "NCCL_DEBUG" in item.needs


def test_absence_from_an_excerpt_accuses_nobody(diagnose: Diagnose) -> None:
    lines = [
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600026 milliseconds"
        for rank in (0, 1, 3)
    ]
    report = diagnose({"issue.md": "\n".join(["It hangs, see below", "```", *lines, "```"]).encode()})
    assert report.verdict is not None
    assert report.verdict.culprit_ranks == ()


def test_a_readme_beside_logs_changes_nothing(diagnose: Diagnose) -> None:
    logs = {f"rank{rank}.log": b"epoch 1 step 3 loss 0.2\n" for rank in (0, 1, 2)}
    logs["rank1.log"] += b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    readme = {"README.md": b"# Our job\n\nTensorFlow and Horovod were used before, TensorFlow 2 with Horovod.\n"}
    alone, beside = diagnose(logs), diagnose(logs | readme)
    assert alone.verdict is not None
    assert beside.verdict is not None
    assert beside.verdict.culprit_ranks == alone.verdict.culprit_ranks == (1,)
    assert beside.world.framework == alone.world.framework
    assert beside.not_checked == alone.not_checked
