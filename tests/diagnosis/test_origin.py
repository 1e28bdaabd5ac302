"""Exceptions that no rule knows: their class and the module that raised them tell the symptom, the words of the message never."""

from __future__ import annotations

import pytest

from phalanx.diagnosis.origin import raised_by_user, symptom_of
from phalanx.model import Event, EventKind, Frame, Stage

from ..conftest import Diagnose

SITE = "/opt/venv/lib/python3.11/site-packages/"
MINE = Frame("/home/user/train.py", 9, "main", "value = table[key]")
RAISING = Frame("/home/user/train.py", 3, "check", 'raise ValueError("bad")')


def raised(kind: str, *frames: Frame, message: str = "something") -> Event:
    return Event(EventKind.EXCEPTION, f"{kind}: {message}", "job.log", 9, frames=frames, data={"type": kind})


@pytest.mark.parametrize(
    ("event", "stage", "symptom"),
    [
        (raised("KeyError", MINE), Stage.PREP, "prep.other"),
        (raised("KeyError", MINE), Stage.TRAIN, "fail.other"),
        (raised("MemoryError", MINE), Stage.TRAIN, "fail.out-of-memory"),
        (raised("torch.OutOfMemoryError", MINE), Stage.TRAIN, "fail.out-of-memory"),
        (raised("NotImplementedError", MINE), Stage.TRAIN, "fail.not-implemented"),
        (raised("FileNotFoundError", MINE), Stage.TRAIN, "fail.path-error"),
        (raised("torch.distributed.DistNetworkError", MINE), Stage.COMM, "comm.setup-failure"),
        (raised("NameError", MINE), Stage.TRAIN, "fail.attribute-not-found"),
        (raised("UnicodeDecodeError", MINE, Frame("<frozen codecs>", 322, "decode")), Stage.TRAIN, "prep.data-loading-failure"),
        (raised("_queue.Empty", MINE, Frame("/usr/lib/python3.11/queue.py", 179, "get"), message=""), Stage.TRAIN, "prep.data-loading-failure"),
        (raised("ValueError", MINE, Frame(SITE + "torch/distributed/elastic/rendezvous/api.py", 66, "__init__")), None, "comm.setup-failure"),
        (raised("KeyError", Frame("/home/user/train.py", 3, "main", "rank = int(os.environ[name])"), Frame("<frozen os>", 679, "__getitem__"), message="'OMPI_COMM_WORLD_RANK'"),
         Stage.PREP, "comm.setup-failure"),
        (raised("KeyError", Frame("/home/user/train.py", 3, "main", "root = os.environ['DATA_DIR']"), Frame("<frozen os>", 679, "__getitem__"), message="'DATA_DIR'"),
         Stage.PREP, "prep.other"),
        (raised("ValueError", Frame("/home/user/data.py", 3, "__getitem__", 'raise ValueError("bad")')), Stage.TRAIN, "prep.data-loading-failure"),
        (raised("KeyError", MINE, Frame(SITE + "torch/utils/data/_utils/fetch.py", 57, "fetch"), Frame("/home/user/train.py", 3, "join", 'rows["labels"]')), Stage.TRAIN,
         "prep.data-loading-failure"),
        (raised("ValueError", MINE, Frame(SITE + "tensorflow/python/distribute/cluster_resolver/slurm_cluster_resolver.py", 323, "cluster_spec")), Stage.PREP, "comm.setup-failure"),
        (raised("ValueError", MINE, Frame(SITE + "torch/utils/data/sampler.py", 7, "__init__")), Stage.PREP, "prep.data-loading-failure"),
        (raised("ValueError", MINE, Frame(SITE + "torch/distributed/distributed_c10d.py", 7, "scatter")), Stage.TRAIN, "fail.communication-error"),
        (raised("RuntimeError", MINE, Frame(SITE + "torch/cuda/nccl.py", 45, "reduce")), None, "fail.communication-error"),
        (raised("AssertionError", MINE, Frame(SITE + "torch/distributed/fsdp/api.py", 7, "state_dict_type")), Stage.TRAIN, "fail.graph-execution-error"),
        (raised("jax.errors.JaxRuntimeError", MINE, message="UNIMPLEMENTED: no such operation"), Stage.TRAIN, "fail.not-implemented"),
        (raised("AssertionError", MINE, Frame(SITE + "jax/experimental/multihost_utils.py", 7, "assert_equal")), Stage.TRAIN, "fail.communication-error"),
    ],
)  # fmt: skip
def test_class_and_module_tell(event: Event, stage: Stage, symptom: str) -> None:
    assert symptom_of(event, stage) == symptom


@pytest.mark.parametrize(
    "message", ["no such model: bloom", "zoom is too large", "peer review failed", "timed out of memory"]
)
def test_the_words_of_a_message_decide_nothing(message: str) -> None:
    assert symptom_of(raised("ValueError", RAISING, message=message), Stage.TRAIN) == "fail.other"
    assert symptom_of(raised("ValueError", message=message), None) == "fail.other"


def test_who_raised_it() -> None:
    assert raised_by_user(raised("ValueError", RAISING)) == RAISING
    assert raised_by_user(raised("KeyError", MINE)) == MINE
    assert raised_by_user(raised("KeyError", MINE, Frame(SITE + "torch/x.py", 1, "f"))) is None
    assert raised_by_user(raised("RuntimeError", MINE)) is None, "native code that the line called"


@pytest.mark.parametrize(
    ("status", "before", "symptom"),
    [
        (1, "", "fail.other"),
        (3, "", "fail.other"),
        (2, "", "prep.other"),  # as parsers of arguments end, before anything is trained
        (2, "[rank1]: step 1 loss 0.5\n[rank1]: step 2 loss 0.4\n", "fail.other"),
    ],
)
def test_of_a_status_alone_no_fix_is_shown(diagnose: Diagnose, status: int, before: str, symptom: str) -> None:
    summary = (
        "============================================================\ntrain.py FAILED\n"
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-17_02:01:04\n  host      : node1\n"
        f"  rank      : 1 (local_rank: 1)\n  exitcode  : {status} (pid: 4211)\n  error_file: <N/A>\n"
        "============================================================\n"
    )
    verdict = diagnose({"job.log": before + summary}).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks, verdict.shown_fixes) == (symptom, (1,), ())
    assert verdict.headline == f"Rank 1 ended with status {status} and printed no reason."
