"""Exceptions that no rule knows: the likeliest symptom and fixes, by words and by where they were raised."""

from __future__ import annotations

import pytest

from phalanx.diagnose.guess import guess
from phalanx.model import Event, EventKind, Frame, Stage

from ..conftest import Diagnose

SITE = "/opt/venv/lib/python3.11/site-packages/"
MINE = Frame("/home/user/train.py", 9, "main", "value = table[key]")


def raised(kind: str, *frames: Frame, message: str = "something") -> Event:
    return Event(EventKind.EXCEPTION, f"{kind}: {message}", "job.log", 9, frames=frames, data={"type": kind})


@pytest.mark.parametrize(
    ("event", "stage", "symptom", "fix"),
    [
        (raised("KeyError", MINE), Stage.PREP, "prep.other", "fix-behavior-logic"),
        (raised("KeyError", MINE), Stage.TRAIN, "fail.other", "fix-behavior-logic"),
        (raised("ValueError", MINE, Frame(SITE + "torch/distributed/elastic/rendezvous/api.py", 66, "__init__"), message="The minimum number of rendezvous nodes (0) must be greater than zero."), None,
         "comm.setup-failure", "fix-communication-configuration"),
        (raised("KeyError", Frame("/home/user/train.py", 3, "main", "rank = int(os.environ['OMPI_COMM_WORLD_RANK'])"), Frame("<frozen os>", 679, "__getitem__")),
         Stage.PREP, "comm.setup-failure", "fix-communication-configuration"),
        (raised("KeyError", Frame("/home/user/train.py", 3, "main", "root = os.environ['DATA_DIR']"), Frame("<frozen os>", 679, "__getitem__")),
         Stage.PREP, "prep.other", "fix-command-line"),
        (raised("IndexError", Frame("/home/user/train.py", 3, "main", "read(shards[hvd.rank()])")), Stage.PREP,
         "prep.data-loading-failure", "fix-dataset"),
        (raised("IndexError", Frame("/home/user/train.py", 3, "main", "use(profiles[1])")), Stage.PREP, "prep.other", "fix-behavior-logic"),
        (raised("ValueError", Frame("/home/user/train.py", 3, "rows", "a, b = line.split(',')"), message="too many values to unpack (expected 2)"),
         Stage.PREP, "prep.data-loading-failure", "fix-dataset"),
        (raised("ValueError", Frame("/home/user/data.py", 3, "__getitem__", 'raise ValueError("bad")')), Stage.TRAIN,
         "prep.data-loading-failure", "fix-dataset"),
        (raised("IndexError", Frame("/home/user/train.py", 3, "main", "use(gpus[1])")), Stage.PREP,
         "prep.device-error", "fix-device-assignment"),
        (raised("ValueError", MINE, Frame(SITE + "tensorflow/python/distribute/cluster_resolver/slurm_cluster_resolver.py", 323, "cluster_spec"),
                message="range() arg 3 must not be zero"), Stage.PREP, "comm.setup-failure", "fix-communication-configuration"),
        (raised("ValueError", MINE, Frame(SITE + "torch/utils/data/sampler.py", 7, "__init__")), Stage.PREP,
         "prep.data-loading-failure", "fix-dataset"),
        (raised("ValueError", MINE, Frame(SITE + "torch/distributed/distributed_c10d.py", 7, "scatter")), Stage.TRAIN,
         "fail.communication-error", "fix-distributed-api-usage"),
        (raised("RuntimeError", MINE, Frame(SITE + "torch/cuda/nccl.py", 45, "reduce")), None,
         "fail.communication-error", "fix-distributed-api-usage"),
        (raised("(truncated traceback)", MINE, Frame(SITE + "torch/nn/parallel/distributed.py", 496, "_distributed_broadcast_coalesced")),
         Stage.PREP, "prep.communication-error", None),
        (raised("ValueError", message="destinations must be one of a `DistributedValues` object, a device string or None"), None,
         "fail.graph-execution-error", "fix-distributed-api-usage"),
        (raised("AssertionError", Frame("/home/user/train.py", 9, "main", "model.load_state_dict(saved)"),
                Frame(SITE + "torch/distributed/fsdp/api.py", 7, "state_dict_type")), Stage.PREP, "fail.checkpoint-unusable", None),
        (raised("TypeError", MINE, message="fit() got an unexpected keyword argument 'workers'"), Stage.TRAIN,
         "fail.attribute-not-found", "fix-framework-version"),
        (raised("KeyError", Frame("/home/user/train.py", 3, "main", 'x = batch["inputs"]'), message="'inputs'"), Stage.TRAIN,
         "prep.data-loading-failure", "fix-dataset"),
        (raised("TypeError", MINE, message="horovod_torch_allreduce_async_torch_FloatTensor(): incompatible function arguments."), Stage.TRAIN,
         "fail.communication-error", "fix-distributed-api-usage"),
        (raised("TypeError", MINE, Frame(SITE + "torch/distributed/distributed_c10d.py", 7, "_check_valid_timeout"),
                message="Expected timeout argument to be of type datetime.timedelta, got 7"), Stage.TRAIN,
         "fail.communication-error", "fix-distributed-api-usage"),
        # JAX hides its frames: the words are not those of the language, so it was not the user's own line that raised it.
        (raised("TypeError", Frame("/home/user/train.py", 3, "f", "y = jnp.dot(x, w)"), message="dot_general requires contracting dimensions to have the same shape, got (32,) and (64,)."),
         Stage.TRAIN, "fail.tensor-mismatch", "fix-model-construction"),
        (raised("TypeError", Frame("/home/user/train.py", 3, "f", "y = jax.vmap(f)(x)"), message="vmap was requested to map its argument along axis 0"),
         Stage.TRAIN, "fail.graph-execution-error", "fix-tensor-api-usage"),
        (raised("jax.errors.JaxRuntimeError", MINE, message="UNIMPLEMENTED: no such operation"), Stage.TRAIN, "fail.not-implemented", None),
        (raised("AssertionError", MINE, Frame(SITE + "jax/experimental/multihost_utils.py", 7, "assert_equal"), message="params differ"), Stage.TRAIN,
         "fail.communication-error", "fix-consistency-between-devices"),
        (raised("TypeError", MINE, message="cannot pickle '_thread.lock' object"), Stage.TRAIN, "fail.other", "fix-distributed-api-usage"),
        (raised("KeyError", Frame("/home/user/train.py", 3, "main", 'opt.load_state_dict(checkpoint["optimizer"])'), message="'optimizer'"), Stage.PREP,
         "prep.model-loading-failure", None),
        (raised("ValueError", Frame("/home/user/train.py", 3, "collate_fn", "tok(texts)"), Frame(SITE + "tokens/base.py", 3, "pad"), message="no padding token"),
         Stage.TRAIN, "prep.data-loading-failure", "fix-dataset"),
    ],
)  # fmt: skip
def test_where_it_was_raised_tells(event: Event, stage: Stage, symptom: str, fix: str | None) -> None:
    guessed = guess(event, stage)
    assert guessed.symptom == symptom
    assert fix is None or fix in guessed.patterns


def test_without_frames_the_type_tells() -> None:
    assert guess(raised("ValueError"), None).symptom == "fail.graph-execution-error"


@pytest.mark.parametrize(
    ("status", "fix"), [(1, "fix-behavior-logic"), (3, "fix-behavior-logic"), (2, "fix-command-line")]
)
def test_a_status_of_its_own_is_the_scripts(diagnose: Diagnose, status: int, fix: str) -> None:
    summary = (
        "============================================================\ntrain.py FAILED\n"
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-17_02:01:04\n  host      : node1\n"
        f"  rank      : 1 (local_rank: 1)\n  exitcode  : {status} (pid: 4211)\n  error_file: <N/A>\n"
        "============================================================\n"
    )
    verdict = diagnose({"job.log": summary}).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks, verdict.fixes[0].pattern) == ("fail.other", (1,), fix)
