"""The variable touches nothing but ranks: which processes are looked at, what the others pay, and that nothing is left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import phalanx_gate
from phalanx_gate import MARK, may_be_a_rank, place_of
from tests.embedded.jobs import SOURCE, prepared


@pytest.mark.parametrize(
    "command",
    [
        "python train.py --epochs 3",
        "python -u -W ignore train.py",
        "python -m package.train",
        "python -c from_multiprocessing.spawn_import_spawn_main",
        "python /opt/ray/_private/workers/default_worker.py",
        "python",
    ],
)
def test_these_may_be_ranks(command: str) -> None:
    assert may_be_a_rank(command.split(), {"RANK": "0"})


@pytest.mark.parametrize(
    "command",
    [
        "python /opt/env/bin/torchrun train.py",
        "python -m torch.distributed.run train.py",
        "python -m torch.distributed.launch train.py",
        "python /opt/env/bin/accelerate launch train.py",
        "python -u -m deepspeed.launcher.launch train.py",
        "python /opt/env/bin/horovodrun -np 2 python train.py",
        "python -m pip install torch",
        "python /opt/env/bin/pip install torch",
        "python -c from_multiprocessing.resource_tracker_import_main",
        "python -c from_multiprocessing.forkserver_import_main",
        "python /opt/torch/_inductor/compile_worker/__main__.py",
        "python -m phalanx attach",
        "python -X dev -m pytest",
    ],
)
def test_these_are_none(command: str) -> None:
    assert not may_be_a_rank(command.split(), {"SLURM_PROCID": "0", "SLURM_NTASKS": "2"})


def test_what_a_rank_starts_is_none_unless_it_gets_a_place_of_its_own() -> None:
    rank = {"RANK": "1", "WORLD_SIZE": "2"}
    assert not may_be_a_rank(["python", "worker.py"], {**rank, MARK: place_of(rank)})
    assert may_be_a_rank(["python", "inner.py"], {**rank, "RANK": "0", MARK: place_of(rank)})


def test_ranks_of_phalanx_run_are_watched_already() -> None:
    assert not may_be_a_rank(["python", "train.py"], {"RANK": "1", "PHALANX_JOB": "x"})


def _probe(folder: Path, code: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**prepared(folder), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=folder,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("value", ["", "0", "off", "False"])
def test_without_the_variable_nothing_is_loaded(tmp_path: Path, value: str) -> None:
    code = "import sys; print([name for name in sys.modules if 'phalanx' in name], len(sys.meta_path))"
    bare = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert _probe(tmp_path, code, PHALANX=value) == "[] " + bare.stdout.split()[-1] + "\n"


def test_a_process_that_asks_for_no_framework_pays_one_import_hook(tmp_path: Path) -> None:
    code = (
        "import sys, threading, json; print(sorted(n for n in sys.modules if 'phalanx' in n), threading.active_count())"
    )
    assert _probe(tmp_path, code, RANK="0", WORLD_SIZE="1") == "['phalanx_gate'] 1\n"
    assert not (tmp_path / "phalanx-runs").exists()


def test_a_script_that_is_no_rank_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install torch")
    code = "import torch.distributed, time; time.sleep(1.2)"
    assert _probe(tmp_path, code) == ""
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_the_file_is_one_line_that_python_runs() -> None:
    lines = (SOURCE / "phalanx_gate.pth").read_text().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("import ")  # what begins otherwise would be a folder
    assert phalanx_gate.__file__ == str(SOURCE / "phalanx_gate.py")
