"""Reports that ask, wish, hand in a change or help others, and tell of no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.diagnose import diagnose_paths

from .test_complaints import verdict


@pytest.mark.parametrize(
    "question",
    [
        "# How could I check that gradients are averaged?\n\nI have my own loader (I had an issue with reading from one place). The loss looks fine.\n",
        "# [feature request] Same behavior on several GPUs\n\nGradients are summed. Is it better to average them?\n",
        "# Question about the loss\n\nI noticed that all the GPUs have the same loss value. How is it calculated?\n",
        "# Large model\n\nMy model does not fit on one card. Does DistributedDataParallel split the layers over the cards?\n",
        "# Can I run two processes on one GPU?\n\nI use horovod. Is there any problem or bottleneck in that case?\n",
        "# Ranks of my workers\n\nI have read [this issue](https://example.org/issues/510) on ranks. Why do workers have different ranks?\n",
        "# hi, I want to know how gloo compares with nccl\n\nNCCL has a higher throughput and lower latency. Which one should I take?\n",
        "# Loader feature request: a variable to choose the reader\n\nI compared both, and with the new one my loader is faster.\n",
        "# Support for the new release?\n\nI would like to use it with DDP.\n",
        "# Average or sum\n\nAccording to my understanding gradients are averaged, so the loss is different. Is my understanding correct?\n",
        "# Slurm on two nodes\n\nI cannot actively know which nodes I get. How can I run these two commands there?\n",
        "# Parameter servers in one file\n\nI am sorry if this is a duplicate issue, but I could not find a single example. I started from the guide.\n",
        "# Training where there is only one GPU\n\nThe config has several. How should I train it?\n",
        "# Scaling of my models\n\nI see 5x with one and only 1.2x with another. What factors affect the scaling efficiency?\n",
        "# If you have trouble with DDP, here is the solution\n\nMy loss was nan on one card, and the others hang in backward. Skip it on all.\n",
        "# Integration of two toolkits: How to run the sample with several GPUs\n\nMy sample only uses 1 GPU. Is there a sample that shows it?\n",
        "# Features\n\nI could not find some, which might be because of the manual, or since it is not implemented. Are there any plans for it?\n",
        "# About the sync of GPUs\n\nI see that the loss in different GPUs is computed alone. Is a reduction needed before backward?\n",
    ],
)
def test_a_question_how_something_is_done_is_no_fault(tmp_path: Path, question: str) -> None:
    path = tmp_path / "question.txt"
    path.write_text(question, encoding="utf-8")
    assert not diagnose_paths([str(path)]).findings


def test_whether_something_is_so_is_asked_and_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "question.txt"
    path.write_text(
        "# Are the slices of both workers merged after the gather?\n\nI read the code and did not find where. Is it a bug, or can you show me?\n",
        encoding="utf-8",
    )
    assert not diagnose_paths([str(path)]).findings


@pytest.mark.parametrize(
    "wish",
    [
        "Leave the batch size the same on more GPUs\n\n## Feature Request\nI suggest adding an option. Now each process has the error-prone size of the config.\n",
        "Add a section on why DDP is sometimes slower than one process\n\n### The doc issue\n\nAdd such a section.\n",
        "Issue regarding batch size\n\nHi, I have a question about batch size. In my understanding each GPU computes its own loss, so why do they add up?\n",
        "Single gpu\n\nWhy are you using only a single GPU? If you use DataParallel, does it slow down?\n",
        "Benchmark for distributed training\n\nI am just wondering if there is any benchmark. What is the speedup with 8 GPUs?\n",
        "fix: end the step when one node fails\n\nA dead launcher on one node left the others hung in collectives until the watchdog's timeout.\n",
        "[REQUEST] Pass on the error of a node\n\n**Describe the solution you'd like**\nI would like the launcher to end with it.\n",
        "Add a timeout argument to shutdown()\n\nThe default timeout value is short. Let's add a `timeout` argument and tests.\n",
        "Fix loading of a wrapped model\n\nIt fails on one GPU later.\n",
        "status: Fail the job if a server fails\n\nThis is to fail it.\n",
        "Moved the group's initialisation\n\nI call it once now. Before, it was `RuntimeError: trying to initialize the default process group twice!`\n",
        "Training with apex\n\nI wrapped the model, which handles some issues with a few nodes.\n\nResolves: #13\n",
        "Elastic tests\n\nThis initial PR introduces a check. Without it my workers crash.\n",
        "[Core feature] Support two launchers\n\nI need it. It is not implemented here.\n",
        "Suggestion: initialize should return an error if it comes too late\n\nI call it and it does not fail. It would be nice to have one.\n",
        "Use abort on error\n\nI think we should try to abort the job when one of the nodes ends.\n",
        "multi_gpu_model documentation does not reflect its removal\n\nI could not get it to work.\n",
        "Fewer reductions\n\n## 🚀 Feature\nI want none in steps that doesn't call the optimizer.\n",
        "Use sharded state to save the model\n\nNow each rank gathers all of it, which is inefficient and may result in an OOM error.\n",
    ],
)
def test_a_wish_or_a_change_is_no_fault(tmp_path: Path, wish: str) -> None:
    path = tmp_path / "wish.txt"
    path.write_text(wish, encoding="utf-8")
    assert not diagnose_paths([str(path)]).findings


def test_a_title_that_ends_in_a_question_mark_and_tells_nothing_is_a_question(tmp_path: Path) -> None:
    path = tmp_path / "question.txt"
    path.write_text(
        "# Feasible to train on fewer GPUs?\n\nYou used 8 GPUs. Would the training time with the same settings be too long?\n",
        encoding="utf-8",
    )
    assert not diagnose_paths([str(path)]).findings


def test_a_problem_that_is_only_a_question_gets_no_verdict(tmp_path: Path) -> None:
    path = tmp_path / "question.txt"
    path.write_text(
        "# Gpu problem\n\nMy server has four cards, I want to use two of them.\nHow can I achieve it?\n", "utf-8"
    )
    assert not diagnose_paths([str(path)]).findings


def test_a_proposal_below_a_title_that_tells_of_trouble_is_a_report(tmp_path: Path) -> None:
    report = "# Wrong validation metrics with DDP\n\nThey differ from those of one GPU. I propose that we split the data evenly.\n"
    assert verdict(tmp_path, report).symptom == "perf.unexpected-intermediate-result"


@pytest.mark.parametrize(
    "report",
    [
        "# Speed can be better\n## 🚀 Feature\nThe speed with accumulation is too low, and could be raised.\n## Pitch\nSkip it.\n",
        "# Problem about the sampler\nMost scripts use a distributed one. So why not use it here, is there any reason?\n",
        "# The script did not wrap the model\nDid I understand that right? Will it change anything?\n",
        "# Loss in the trainer\nI am not sure if it is a bug. The loss of rank 0 is printed. Do we need to reduce it?\n",
    ],
)
def test_wishes_and_questions_are_no_faults(tmp_path: Path, report: str) -> None:
    path = tmp_path / "report.md"
    path.write_text(report, encoding="utf-8")
    assert not diagnose_paths([str(path)]).findings
