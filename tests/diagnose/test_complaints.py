"""What a person's report is about, by the person's own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.diagnose import diagnose_paths
from phalanx.diagnose.complaints import prior, read_complaint
from phalanx.model import Finding
from phalanx.sources.people import words_of_person


def best_symptom(report: str) -> str:
    words = words_of_person(report, "report.md")
    assert words is not None
    points = read_complaint("report.md", words).points
    return max(points, key=lambda symptom: points[symptom])


def verdict(tmp_path: Path, report: str) -> Finding:
    path = tmp_path / "report.md"
    path.write_text(report, encoding="utf-8")
    findings = diagnose_paths([str(path)]).findings
    assert findings
    return findings[0]


@pytest.mark.parametrize(
    ("report", "symptom"),
    [
        ("# Cannot build the package\nI run pip and the compilation fails.\n", "build.install-failure"),
        ("# The library cannot be imported\nThe import fails on my laptop.\n", "build.import-error"),
        ("# Job stuck at init_process_group\nIt hangs on two machines, no output.\n", "comm.hang-timeout"),
        ("# Freezes in DDP(model)\nThe line that wraps the model never returns.\n", "prep.hang-timeout"),
        ("# Deadlock after 300 iterations\nMy training stops in the middle of an epoch.\n", "perf.hang"),
        ("# Two cards are slower than one\nI see no speedup at all.\n", "perf.low-efficiency"),
        ("# Only one GPU is used\nThe other cards are idle.\n", "perf.unexpected-parallelization-or-device"),
        ("# Loss does not converge with 4 workers\nIt becomes NaN.\n", "perf.non-convergence"),
        ("# Different gradients on each rank\nThey are not averaged.\n", "perf.unexpected-intermediate-result"),
        (
            "# GPU load imbalance\nThe first card uses more memory than the others.\n",
            "perf.unexpected-parallelization-or-device",
        ),
        ("# DDP does not work\nIt is stuck in the second epoch.\n", "perf.hang"),
        ("# Loading a SHARDED_STATE_DICT asserts\nI saved it on two nodes.\n", "fail.checkpoint-unusable"),
        ("# master pod is not started\nMy workers are there.\n", "comm.setup-failure"),
        ("# Runs out of memory\nI get OOM on the first card.\n", "fail.out-of-memory"),
        ("# Segfault when I start it\nIt ends with a core dump.\n", "fail.segmentation-fault"),
        ("# Worse results with DDP\nI see much faster epochs, but a lower accuracy.\n", "perf.non-convergence"),
        ("# Averages are wrong\nThe reduction does not give the average.\n", "perf.unexpected-intermediate-result"),
        ("# Keras and CUDA\nKeras only sees the first card.\n", "perf.unexpected-parallelization-or-device"),
        ("# One host is killed\nThe remaining workers failed with status 134.\n", "fail.communication-error"),
        (
            "# rank-0 GPU has extra memory in use\nIt has more memory than the other GPUs.\n",
            "perf.unexpected-parallelization-or-device",
        ),
        (
            "# Is the reduction done on the CPU\nI see that it runs on the CPU.\n",
            "perf.unexpected-parallelization-or-device",
        ),
        ("# set_device_map does not work\nI call it before init_rpc.\n", "comm.setup-failure"),
        ("# Two slots of one host\nIt seems to block at broadcast_global_variables.\n", "prep.hang-timeout"),
        ("# Stops at the start\nI have waited for several hours at hvd.init().\n", "comm.hang-timeout"),
        ("# Can not save the parallel model\nThe checkpoint fails.\n", "fail.checkpoint-unusable"),
        (
            "# Trying to install it in a fresh environment (with the framework) and nothing seems to work\n",
            "build.install-failure",
        ),
        (
            "# Parameters of a run on two GPUs do not match those of a local one\nI compared them.\n",
            "perf.unexpected-intermediate-result",
        ),
        ("# The wrapper does not allow access to attributes\nI wrapped my model.\n", "fail.attribute-not-found"),
        ("# Wild performance difference between one node and two\nI ran both.\n", "perf.low-efficiency"),
        ("# All processes run on all GPUs\nI see it in nvidia-smi.\n", "perf.unexpected-parallelization-or-device"),
        ("# Model trained on multiple GPUs not loading\nI cannot load it.\n", "fail.checkpoint-unusable"),
        ("# Random crashes with num_workers\nIt doesn't make sense.\n", "prep.data-loading-failure"),
        ("# My fabric has 200 Gb/s\nBetween two nodes I get about 3GB/s with it.\n", "perf.low-efficiency"),
        (
            "# My program\nIt often stops at some iteration. The memory is occupied, but the utilization is 0.\n",
            "perf.hang",
        ),
        ("# My code\nIt keeps running and never halts with 8 processes in the second epoch.\n", "perf.hang"),
        ("# The server pod keeps running after the job is complete\nI see it for days.\n", "perf.other"),
        ("# Server failed but my job is still running\nI see it in the status.\n", "perf.other"),
        ("# pmap needs huge memory\nIt blows up with the batch.\n", "fail.out-of-memory"),
        ("# Only a few more samples\nWith two cards I can't set double batch size.\n", "fail.out-of-memory"),
        ("# Sharding of my arrays\nThe pjit of my step fails.\n", "fail.graph-execution-error"),
        (
            "# The result of my loss with masks and weights for some heads of a model is different from one process\nI see.\n",
            "perf.unexpected-intermediate-result",
        ),
        ("# Outputs\nThe wrapper only returns output of one GPU.\n", "perf.unexpected-parallelization-or-device"),
        (
            "# Nodes of my job\nThe training would still use 2 GPUs however many I ask for.\n",
            "perf.unexpected-parallelization-or-device",
        ),
        (
            "# Training on multiple GPUs, inference on a single one\nMy model raises an error.\n",
            "fail.checkpoint-unusable",
        ),
        ("# Two cards\nI only got the second one occupied.\n", "perf.unexpected-parallelization-or-device"),
        ("# Performance is worse going from one host to two\nI see fewer samples.\n", "perf.low-efficiency"),
        ("# After Ctrl-C\nI stop the job and one process still holds memory.\n", "perf.other"),
        ("# Wrapping\nMy code has no gradient synchronization any more.\n", "perf.unexpected-intermediate-result"),
        (
            "# Chosen devices\nI set two, but it still puts the model on all GPUs.\n",
            "perf.unexpected-parallelization-or-device",
        ),
        ("# MirroredStrategy example code is erroring out\nI copied it.\n", "fail.graph-execution-error"),
        (
            "# MirroredStrategy to spread the work of my model ends in an assertion error\nI copied it.\n",
            "fail.graph-execution-error",
        ),
    ],
)
def test_own_words(report: str, symptom: str) -> None:
    assert best_symptom(report) == symptom


def test_the_questions_of_a_form_are_not_the_persons_words() -> None:
    form = "2. If your question is about hang, did you read the docs?\n3. If your question is about docker, did you read it?\n"
    report = f"# Slow with two nodes\n**Checklist:**\n{form}**Your question:**\nMy job is slower on two nodes.\n"
    assert best_symptom(report) == "perf.low-efficiency"
    words = words_of_person(report)
    assert words is not None
    assert "hang" not in words


def test_the_complaint_outweighs_what_was_pasted_beside_it(tmp_path: Path) -> None:
    report = (
        "# Training gets slower and slower with more nodes\nMy throughput drops by half on 8 nodes, I see no speedup.\n"
        "```\nValueError: something that I got over\n```\nEverything else is fine, thanks.\n"
    )
    assert verdict(tmp_path, report).symptom == "perf.low-efficiency"


def test_a_message_that_a_rule_knows_outweighs_general_words(tmp_path: Path) -> None:
    report = "# Problem with my job\nI get this:\n```\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.00 GiB total capacity)\n```\n"
    finding = verdict(tmp_path, report)
    assert finding.symptom == "fail.out-of-memory"
    assert finding.rule is not None


def test_an_unknown_exception_in_a_report_is_still_named(tmp_path: Path) -> None:
    report = "# AssertionError: replicas differ in an odd way\nI use it on my machine.\n"
    finding = verdict(tmp_path, report)
    assert finding.symptom == "fail.graph-execution-error"
    assert finding.confidence.value == "possible"
    assert finding.culprit_ranks == ()
    assert len(finding.fixes) >= 3


def test_words_accuse_nobody(tmp_path: Path) -> None:
    report = "# Rank 3 of 8 hangs\nMy rank 3 hangs after some epochs, I do not know why.\n"
    assert verdict(tmp_path, report).culprit_ranks == ()


def test_a_report_without_a_complaint_gives_no_finding(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.write_text("# Hello\nI trained my network on two cards and I like it. Thanks.\n", encoding="utf-8")
    assert diagnose_paths([str(path)]).findings == ()


def test_frequency_is_a_tie_break_only() -> None:
    assert prior("fail.checkpoint-unusable", "keras") > prior("fail.checkpoint-unusable", "torch")
    assert prior("build.install-failure", "horovod") > prior("perf.other", "horovod")
    assert all(0 <= prior(symptom, None) <= 1 for symptom in ("comm.setup-failure", "perf.other"))


def test_a_message_in_the_title_outweighs_one_that_is_told_beside_it(tmp_path: Path) -> None:
    report = (
        "# ValueError: You are trying to load a weight file containing 3 layers into a model with 1 layers.\n\n"
        "I wrap my model and load the weights. It says so, and then AttributeError: 'Session' object has no attribute 'close_it'.\n"
    )
    assert verdict(tmp_path, report).symptom == "prep.model-loading-failure"


def test_a_hang_that_is_mentioned_under_a_title_that_tells_of_an_error_counts_half() -> None:
    error = words_of_person("# NCCL error at the start\n\nThree of my machines fail, one gets stuck.\n", "report.md")
    hang = words_of_person("# Trouble with my machines\n\nThree of them wait, one gets stuck.\n", "report.md")
    assert error is not None
    assert hang is not None
    assert "fail.communication-error" in read_complaint("a", error).points
    assert (
        max(read_complaint("a", error).points.values()) == read_complaint("a", error).points["fail.communication-error"]
    )
    beside = [points for symptom, points in read_complaint("a", error).points.items() if "hang" in symptom]
    assert 0 < max(beside) <= 2.0


def test_a_hang_of_which_no_stage_is_told_is_placed_by_the_counts() -> None:
    words = words_of_person("# It hangs\nMy job hangs with this script.\n", "report.md")
    assert words is not None
    torch, horovod = (read_complaint("report.md", words, framework=name).points for name in ("torch", "horovod"))
    assert torch["perf.hang"] > torch["comm.hang-timeout"]
    assert horovod["comm.hang-timeout"] > horovod["perf.hang"]


def test_how_fast_it_was_is_beside_the_point_where_an_exception_ended_it() -> None:
    words = words_of_person(
        "# SyncBatchNorm and my model\nIt throws an exception. The throughput was fine before.\n", "report.md"
    )
    assert words is not None
    alone = read_complaint("report.md", words).points["perf.low-efficiency"]
    beside = read_complaint("report.md", words, ["RuntimeError: tensors must have the same size"]).points
    assert 0 < beside["perf.low-efficiency"] < alone


def test_an_exception_at_an_import_is_an_import_error(tmp_path: Path) -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n    import keras\n'
        '  File "/usr/local/lib/python3.7/dist-packages/keras/__init__.py", line 20, in <module>\n    from . import initializers\n'
        "AttributeError: module 'keras.utils.generic_utils' has no attribute 'populate_dict_with_module_objects'\n"
    )
    path = tmp_path / "job.log"
    path.write_text(log, encoding="utf-8")
    assert diagnose_paths([str(path)]).findings[0].symptom == "build.import-error"


def test_a_stall_that_misses_all_but_one_rank_accuses_nobody(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(
        "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder "
        "of ranks for more than 60 seconds.\nStalled ops:\nlr_0 [missing ranks: 1, 2, 3, 4, 5]\n",
        encoding="utf-8",
    )
    finding = diagnose_paths([str(path)]).findings[0]
    assert finding.symptom == "perf.hang"
    assert finding.culprit_ranks == ()


def test_a_title_alone_is_a_report(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("# hvd.size() is 1, but MPI counts 8\n", encoding="utf-8")
    found = diagnose_paths([str(path)]).findings
    assert found[0].symptom == "perf.unexpected-parallelization-or-device"


@pytest.mark.parametrize(
    ("report", "symptom"),
    [
        ("# Cannot get the example to run\nI use horovod, and my job does not work.\n", "comm.setup-failure"),
        (
            "# Cannot get the example to run\nI use horovod, and an exception comes in the second epoch of training.\n",
            "fail.communication-error",
        ),
    ],
)
def test_a_failure_of_which_only_the_moment_is_told(tmp_path: Path, report: str, symptom: str) -> None:
    assert verdict(tmp_path, report).symptom == symptom


def test_a_line_of_code_that_somebody_marked_tells_the_place(tmp_path: Path) -> None:
    code = "```\nimport torch\ntorch.distributed.init_process_group(backend='nccl')  ## hanging here\n```\n"
    report = f"# Training hangs with the launcher\n\nI train a model with several processes. Can anyone help?\n\n{code}"
    assert verdict(tmp_path, report).symptom == "comm.hang-timeout"


def test_what_cured_it_is_no_complaint(tmp_path: Path) -> None:
    cured = (
        "# The example ends with the new release\n\nI get this. Installing toolkit==0.2.12 fixed the issue.\n\n```\n"
    )
    raised = "TypeError: One of xmap results has an out_axes specification of ['batch', ...], but is mapped along more axes\n"
    assert verdict(tmp_path, f"{cured}{raised}```\n").symptom == "fail.graph-execution-error"


def test_a_failure_with_saved_weights_of_which_nothing_is_told(tmp_path: Path) -> None:
    report = "# Load weights on several cards\n\nI trained on one card, and now I load the weights. It doesn't work for me.\n"
    assert verdict(tmp_path, report).symptom == "prep.model-loading-failure"


def test_what_it_was_compared_with_is_no_complaint(tmp_path: Path) -> None:
    report = "# Failed training with more than one GPU\n\nWith 4 GPUs the loss became nan, while it did not when I used only 1 GPU.\n"
    assert verdict(tmp_path, report).symptom == "perf.non-convergence"


def test_a_start_whose_end_was_not_pasted_is_no_hang(tmp_path: Path) -> None:
    pasted = "```\nnode0:31:40 [0] NCCL INFO comm 0x55 rank 0 nranks 16 cudaDev 0 commId 0x65 - Init START\n```\n"
    told = verdict(tmp_path, "# GPU Direct RDMA is disabled\n\nI want to know why it is not used.\n\n" + pasted)
    assert told.symptom == "comm.unexpected-protocol"
    assert verdict(tmp_path, "# My job hangs\n\nIt stops here.\n\n" + pasted).symptom == "comm.hang-timeout"


def test_an_exception_that_a_title_names_outweighs_what_is_told_beside_it(tmp_path: Path) -> None:
    report = "# With two GPUs _pickle.PicklingError:\n\nI have 4 GPUs and only one is used now. With gpus=2 I get the error.\n"
    assert verdict(tmp_path, report).symptom in ("prep.other", "fail.other")


def test_a_warning_of_slowness_is_beside_the_point_where_an_error_is_told(tmp_path: Path) -> None:
    pasted = "UserWarning: There is an imbalance between your GPUs. You may want to exclude GPU 4\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  NCCL Error 1: unhandled cuda error\n"
    assert verdict(tmp_path, f"# About training\n\nI got this error:\n{pasted}").symptom == "fail.communication-error"


def test_what_a_person_says_of_the_start_places_a_message_there(tmp_path: Path) -> None:
    pasted = "```\n[W tensorpipe_agent.cpp:530] RPC agent for worker0 encountered error when accepting incoming pipe: ETIMEDOUT\n```\n"
    assert verdict(tmp_path, f"# init_rpc() errors on two hosts\n\nI get:\n{pasted}").symptom == "comm.setup-failure"
    assert (
        verdict(tmp_path, f"# It broke\n\nI see this in the third epoch:\n{pasted}").symptom
        == "fail.communication-error"
    )


def test_a_failure_while_it_trains_is_none_of_the_start(tmp_path: Path) -> None:
    report = "# Error in some steps\n\nI get it on all four cards after two epochs of training, and do not know more.\n"
    assert verdict(tmp_path, report).symptom.startswith("fail.")


def test_a_tag_that_sorts_a_post_is_no_part_of_what_it_tells(tmp_path: Path) -> None:
    report = "# [Bug]: Is it normal that the loss is nan with 4 GPUs?\n\nI only see this with DDP.\n"
    assert verdict(tmp_path, report).symptom == "perf.non-convergence"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("filler", ["-" * 500 + "G", "a-", "0.", "- ", "0_", "x.y/", "it's "])
@pytest.mark.parametrize(
    "trouble", ["Run on two machines, ", "It fails with docker and ", "Memory of the main gpu ", "nccl "]
)
def test_a_long_ruler_or_number_does_not_take_hours(trouble: str, filler: str) -> None:
    prose = "Trouble with the training. " + trouble + filler * (12_000 // len(filler))
    assert read_complaint("report.md", prose, [prose]).said.startswith("Trouble")


FORM = """

**System information**
- Have I written custom code (as opposed to using a stock example script provided in TensorFlow): yes
- OS Platform and Distribution (e.g., Linux Ubuntu 16.04): Ubuntu 18.04
- GPU model and memory: 4x GTX 1080 Ti 11GB

**Describe the current behavior**
{}
**Describe the expected behavior**
The same as on one machine.

**Standalone code to reproduce the issue**
Provide a reproducible test case that is the bare minimum necessary to generate the problem.

**Other info / logs** Include any logs or source code that would be helpful to diagnose the problem.
"""
TALK = """
+1, same issue here. Any update?

Thanks for reporting. Could you please provide a minimal example and the full log?

This issue has been automatically marked as stale because it has not had recent activity.
"""


@pytest.mark.parametrize(
    ("title", "told", "is_trouble"),
    [
        ("Tutorial for several machines", "I would like to see how people set this up.", False),
        ("Big difference between training with 1 GPU and with 8 GPUs", "The loss is much higher with 8.", True),
        ("Memory is not released after training", "It stays used until I reboot.", True),
    ],
)
def test_a_form_and_the_answers_below_change_no_verdict(
    tmp_path: Path, title: str, told: str, is_trouble: bool
) -> None:
    found = []
    for report in (f"{title}\n\n{told}\n", title + FORM.format(told), f"{title}\n\n{told}\n{TALK}"):
        (tmp_path / "report.md").write_text(report, encoding="utf-8")
        findings = diagnose_paths([str(tmp_path / "report.md")]).findings
        found.append(findings[0].symptom if findings else None)
    assert len(set(found)) == 1, found
    assert (found[0] is not None) == is_trouble


def test_an_exception_without_its_traceback_gets_a_verdict(tmp_path: Path) -> None:
    path = tmp_path / "error.txt"
    path.write_text("ValueError: the shapes of the tensors (3, 4) and (4, 3) must match\n", encoding="utf-8")
    (finding,) = diagnose_paths([str(path)]).findings
    assert finding.symptom == "fail.tensor-mismatch"
    assert not finding.culprit_ranks


@pytest.mark.parametrize(
    ("report", "symptom"),
    [
        ("# Error with DDP between nodes\nI use two nodes. It fails.\n", "comm.setup-failure"),
        ("# local_rank error\nI use the launcher and get an error.\n", "comm.setup-failure"),
        ("# Failing to load a model with from_pretrained\nI use ZeRO.\n", "prep.model-loading-failure"),
        ("# It ends\nThe launcher says that it exits with return code = -7.\n", "fail.memory-issue"),
        ("# It fails with exit code 245\nI see nothing else.\n", "fail.segmentation-fault"),
        ('# It ends after three epochs\nI only received "Killed".\n', "fail.out-of-memory"),
        (
            "# The checkpoint saved with two GPUs is incorrect\nWith one GPU I see good results.\n",
            "fail.checkpoint-unusable",
        ),
        ("# Cannot continue training from a checkpoint\nI use FSDP, and it fails.\n", "fail.checkpoint-unusable"),
        ("# Every card is taken\nI ask for one, but all GPUs are used.\n", "perf.unexpected-parallelization-or-device"),
        ("# Times\nThe training time of 2 and 8 GPUs is not much different.\n", "perf.low-efficiency"),
        ("# WER is different with two GPUs\nI changed nothing else.\n", "perf.unexpected-intermediate-result"),
        ("# With four GPUs the results are inferior\nI use DDP.\n", "perf.unexpected-intermediate-result"),
        ("# Reward\nThe reward keeps fluctuating, with no upward trend.\n", "perf.non-convergence"),
    ],
)
def test_words_for_what_few_programs_print(report: str, symptom: str) -> None:
    assert best_symptom(report) == symptom


def test_a_person_who_is_stuck_and_layers_that_are_frozen_do_not_hang() -> None:
    report = (
        "# Slower with more GPUs\nI use a frozen backbone. Two GPUs are slower than one. I am badly stuck on this.\n"
    )
    words = words_of_person(report, "report.md")
    assert words is not None
    assert not read_complaint("report.md", words).tells_of_wait


def test_a_killed_process_in_a_report_mostly_lacked_memory(tmp_path: Path) -> None:
    log = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: 41) of binary: python"
    found = verdict(tmp_path, f"# Fails after an epoch\nI do not know why.\n```\n{log}\n```\n")
    assert (found.rule, found.symptom) == ("FOT001", "fail.out-of-memory")


def test_the_launchers_traceback_without_its_end_says_nothing(tmp_path: Path) -> None:
    frames = 'File "/lib/site-packages/torch/distributed/run.py", line 9, in main\n    run(args)'
    report = f"# ChildFailedError\nIs my memory not enough?\n```\nTraceback (most recent call last):\n  {frames}\n"
    assert verdict(tmp_path, report).symptom == "fail.out-of-memory"


def test_an_exceptions_name_in_the_title_tells_more_than_what_failed(tmp_path: Path) -> None:
    report = "# DDP fails at startup due to FileExistsError\nStarting fails with two GPUs for me.\n"
    assert verdict(tmp_path, report).symptom == "fail.path-error"


def test_a_rank_that_speaks_of_itself_alone_is_not_accused(tmp_path: Path) -> None:
    line = "[rank2]: RuntimeError: [2]: params[3] in this process with sizes [4, 5] appears not to match sizes of the same param in process 0."
    found = verdict(tmp_path, f"# Error with four GPUs\nI get this:\n```\n{line}\n```\n")
    assert (found.rule, found.culprit_ranks) == ("PCE001", ())
