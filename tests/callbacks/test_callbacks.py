"""Trainers tell the watch at which step they are: the real ones, with our entry points, and nothing where nobody watches."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import phalanx
from phalanx.run.watch.heartbeat import FOLDER, HeartbeatFile

SOURCE = Path(phalanx.__file__).parent.parent
LIGHTNING = """
import torch, lightning.pytorch as pl
from lightning.pytorch.demos.boring_classes import BoringModel
trainer = pl.Trainer(max_steps=3, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
                     enable_progress_bar=False, enable_model_summary=False, limit_val_batches=0)
print("PhalanxCallback" in [type(one).__name__ for one in trainer.callbacks])
trainer.fit(BoringModel())
"""
TRANSFORMERS = """
import sys
from phalanx.callbacks.transformers import add_by_default
from phalanx.embedded.hooks import after_import
after_import("transformers.trainer", add_by_default)
import torch
from transformers import Trainer, TrainingArguments
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def forward(self, x=None, labels=None):
        return {"loss": self.layer(x).square().mean()}
data = [{"x": torch.ones(2)} for _ in range(6)]
arguments = TrainingArguments("out", max_steps=3, per_device_train_batch_size=1, report_to=[], use_cpu=True, save_strategy="no",
                              disable_tqdm=True, logging_strategy="no")
trainer = Trainer(Model(), arguments, train_dataset=data)
print("PhalanxCallback" in [type(one).__name__ for one in trainer.callback_handler.callbacks])
trainer.train()
"""

CLOSED = "[../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:4711. This is typically caused by a remote worker crashing."


def run(folder: Path, code: str, watched: bool = True) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(code)
    entries = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["project"]["entry-points"]
    metadata = folder / "phalanx_callbacks-1.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: phalanx-callbacks\nVersion: 1\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in made.items())
        for group, made in entries.items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    path = os.pathsep.join([*([str(FOLDER)] if watched else []), str(SOURCE), str(folder)])
    variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    variables.pop("PHALANX", None)
    if watched:
        variables["PHALANX_INSIDE"] = f"0:1:{folder / 'heartbeat'}"
    return subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def test_a_step_reaches_the_watch_and_nothing_where_there_is_none(tmp_path: Path) -> None:
    code = "from phalanx.callbacks import note\nprint(note(7, 'validating'))"
    assert run(tmp_path, code).stdout == "True\n"
    beat = HeartbeatFile(tmp_path / "heartbeat").read()
    assert beat is not None
    assert (beat.step, beat.phase_name, beat.progress) == (7, "validating", 7)
    assert run(tmp_path, code, watched=False).stdout == "False\n"


@pytest.mark.job
@pytest.mark.parametrize(("name", "code"), [("lightning", LIGHTNING), ("transformers", TRANSFORMERS)])
def test_real_trainers_tell_their_steps(tmp_path: Path, name: str, code: str) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install torch")
    pytest.importorskip(name, reason=f"needs {name}: pip install '.[dev]'")
    done = run(tmp_path, code)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "True" in done.stdout.splitlines()  # DeepSpeed, where installed, prints a line of its own
    beat = HeartbeatFile(tmp_path / "heartbeat").read()
    assert beat is not None
    assert (beat.step, beat.told_phase) == (3, "done")


def test_ray_exceptions_become_a_verdict() -> None:
    pytest.importorskip("ray", reason="needs ray: pip install ray")
    from ray.train.v2.api.callback import RayTrainCallback

    from phalanx.callbacks.ray import PhalanxCallback, verdict_of

    assert issubclass(PhalanxCallback, RayTrainCallback)  # which Ray asks of classes in RAY_TRAIN_CALLBACKS
    try:
        raise KeyError("labels")
    except KeyError as error:
        text = verdict_of({1: error, 0: RuntimeError(CLOSED)})
    assert text.startswith("✗ Rank 1 raised KeyError: 'labels'")


RAY = """
import ray, torch
import torch.distributed as dist
from ray.train import RunConfig, ScalingConfig, get_context
from ray.train.torch import TorchTrainer

def train():
    for step in range(5):
        if get_context().get_world_rank() == 1 and step == 3:
            raise KeyError("labels")
        dist.all_reduce(torch.ones(4))

ray.init(address="local", num_cpus=4, include_dashboard=False)
try:
    TorchTrainer(
        train, scaling_config=ScalingConfig(num_workers=2), run_config=RunConfig(storage_path=STORAGE)
    ).fit()
except ray.train.WorkerGroupError as error:
    print("ended by", type(error).__name__)
"""


@pytest.mark.job
def test_a_real_run_of_ray_train_says_who_broke_it(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install torch")
    pytest.importorskip("ray.train", reason="needs ray: pip install 'ray[train]'")
    (tmp_path / "train.py").write_text(f"STORAGE = {str(tmp_path)!r}\n{RAY}")
    environment = {
        **os.environ,
        "RAY_TRAIN_V2_ENABLED": "1",
        "RAY_TRAIN_CALLBACKS": "phalanx.callbacks.ray.PhalanxCallback",
        "RAY_DEDUP_LOGS": "0",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "ended by WorkerGroupError" in done.stdout, done.stderr[-3000:]
    assert "Rank 1 raised KeyError: 'labels' in train (train.py:" in done.stdout + done.stderr
