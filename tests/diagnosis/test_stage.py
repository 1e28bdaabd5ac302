"""The same message at another stage is another symptom."""

from __future__ import annotations

import pytest

from phalanx.diagnosis.stage import stage_of
from phalanx.model import Event, EventKind, Frame, Stage
from phalanx.sources import FileSurvey, RankSurvey

from ..conftest import Diagnose


def event(*frames: Frame, line: int = 10, source: str = "traceback") -> Event:
    return Event(EventKind.EXCEPTION, "RuntimeError: x", "job.log", line, source=source, frames=frames)


@pytest.mark.parametrize(
    ("frames", "stage"),
    [
        ([Frame("train.py", 3, "<module>", "import horovod.torch as hvd")], Stage.BUILD),
        ([Frame("bench.py", 3, "setup", "import horovod.tensorflow as hvd")], Stage.BUILD),
        ([Frame("train.py", 9, "main", 'dist.init_process_group("nccl")')], Stage.COMM),
        ([Frame("train.py", 9, "main", "hvd.init()")], Stage.COMM),
        ([Frame("train.py", 12, "main", "model = DistributedDataParallel(model)")], Stage.PREP),
        ([Frame("train.py", 12, "train", "model = DDP(model, device_ids=[gpu])")], Stage.PREP),
        ([Frame("train.py", 12, "train_step", "model = DDP(model, device_ids=[gpu])")], Stage.TRAIN),
        (
            [
                Frame("train.py", 138, "main", "model = Distributor(model)"),
                Frame("/opt/venv/lib/python3.6/site-packages/torch/nn/parallel/distributed_cpu.py", 78, "__init__"),
            ],
            Stage.PREP,
        ),
        ([Frame("train.py", 12, "prepare", "dist.all_reduce(sizes)")], Stage.PREP),
        ([Frame("train.py", 12, "main", "dist.all_reduce(loss)")], Stage.TRAIN),
        ([Frame("train.py", 12, "main", "dist.all_gather_object(names, mine)")], None),
        ([Frame("train.py", 12, "load_data", "return parse(path)")], Stage.PREP),
        ([Frame("train.py", 30, "main", "loss.backward()")], Stage.TRAIN),
        (
            [Frame("train.py", 50, "main", "train(model)"), Frame("train.py", 20, "train", "x = batch.cuda()")],
            Stage.TRAIN,
        ),
        (
            [
                Frame("train.py", 50, "<module>", "main()"),
                Frame("/opt/venv/lib/python3.11/site-packages/torch/x.py", 1, "f"),
            ],
            None,
        ),
        ([], None),
    ],
)
def test_frames(frames: list[Frame], stage: Stage | None) -> None:
    assert stage_of(event(*frames), None, False) is stage


def test_the_function_of_a_step_in_a_status_means_training() -> None:
    told = "(0) Internal: {{function_node __inference_train_function_1637}} failed to connect to all addresses"
    line = Event(EventKind.LINE, told, "job.log", 10)
    assert stage_of(line, None, False) is Stage.TRAIN


def test_progress_before_means_training() -> None:
    file = FileSurvey("job.log", ranks={None: RankSurvey(first_progress=4, last_progress=8)})
    load = Frame("train.py", 12, "resume", "model.load_state_dict(state)")
    assert stage_of(event(load), file, False) is Stage.TRAIN
    assert stage_of(event(load, line=2), file, False) is Stage.PREP
    assert stage_of(event(), None, True) is Stage.TRAIN


def test_builds_are_their_own_stage() -> None:
    assert stage_of(event(source="build"), None, False) is Stage.BUILD


def test_a_frame_further_down_tells_the_stage_of_a_barrier(diagnose: Diagnose) -> None:
    said = "RuntimeError: [Rank 0]: Rank 2 failed to pass monitoredBarrier in 6000 ms"
    where = '  File "train.py", line 54, in main\n    dist.monitored_barrier(timeout=limit)\n'
    waits = f"[E ProcessGroupGloo.cpp:67] {said[14:]}\nTraceback (most recent call last):\n{where}{said}\n"
    verdict = diagnose({"rank0.log": waits, "rank1.log": "loading\n", "rank2.log": "loading\n"}).verdict
    assert verdict is not None
    assert verdict.symptom == "prep.hang-timeout"
    assert verdict.culprit_ranks == (2,)
